"""services.runtime.lifecycle: the first signal drains, the second stops. Real signals to a real process are at the end."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import pytest

from schemas.errors import SettingsError
from services.runtime.lifecycle import Lifecycle, run_service, supervise
from support.eventually import PATIENCE_S

SERVICE = """
import asyncio, sys
from services.runtime.lifecycle import Lifecycle, run_service

async def main(life: Lifecycle) -> None:
    life.ready()
    print("ready", flush=True)
    await life.draining.wait()
    print("draining", flush=True)
    if sys.argv[1] == "slow":
        await asyncio.Event().wait()

sys.exit(run_service(main))
"""


async def test_work_that_nobody_waits_for_any_more_is_given_up_and_its_error_is_its_own() -> None:
    life = Lifecycle()
    assert await life.unless_draining(asyncio.sleep(0))

    async def fails() -> None:
        raise SettingsError("wrong")

    with pytest.raises(SettingsError, match="wrong"):
        await life.unless_draining(fails())
    forever = asyncio.create_task(life.unless_draining(asyncio.Event().wait()))
    life.drain("SIGTERM")
    assert not await forever


async def test_draining_comes_once_and_stopping_implies_it() -> None:
    life = Lifecycle()
    seen: list[str] = [life.state]
    for step in (life.ready, life.stop, life.ready, life.drain):
        step()
        seen.append(life.state)
    assert seen == ["starting", "ready", "stopped", "stopped", "stopped"]
    assert life.draining.is_set()


async def test_the_second_signal_stops() -> None:
    life = Lifecycle()
    life.signalled(signal.SIGTERM)
    assert (life.state, life.stopped.is_set()) == ("draining", False)
    life.signalled(signal.SIGINT)
    assert life.stopped.is_set()


async def test_a_service_asked_to_go_before_it_was_ready_never_becomes_ready() -> None:
    life = Lifecycle()
    life.drain()
    life.ready()
    assert life.state == "draining"


async def test_a_service_that_is_done_ends_and_its_error_is_raised() -> None:
    async def fine(_: Lifecycle) -> None:
        return None

    async def broken(_: Lifecycle) -> None:
        raise ValueError("broken")

    await supervise(fine)
    with pytest.raises(ValueError, match="broken"):
        await supervise(broken)


async def test_a_stopped_service_is_cancelled() -> None:
    ended = asyncio.Event()

    async def stubborn(life: Lifecycle) -> None:
        try:
            life.stop()
            await asyncio.Event().wait()
        finally:
            ended.set()

    await supervise(stubborn)
    assert ended.is_set()


def test_an_error_on_purpose_is_one_line_and_a_failed_exit(capsys: pytest.CaptureFixture[str]) -> None:
    async def misconfigured(_: Lifecycle) -> None:
        raise SettingsError("router.prot is not a setting")

    assert run_service(misconfigured) == 1
    err = capsys.readouterr().err
    assert "SettingsError: router.prot is not a setting" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("kind", ["quick", "slow"])
def test_real_signals_drain_and_then_stop_a_process(kind: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVICE, kind], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGTERM)
        assert child.stdout.readline() == b"draining\n"
        if kind == "slow":
            child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=PATIENCE_S) == 0
