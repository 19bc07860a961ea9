"""Signals to this very process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest

from services.cli.interrupt import until_signal
from support.eventually import eventually


async def test_work_that_ends_by_itself_gives_its_result() -> None:
    async def work() -> str:
        return "done"

    assert await until_signal(work()) == "done"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_cancels_the_work_whose_clean_up_runs_whole(number: signal.Signals) -> None:
    steps: list[str] = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned up")

    assert await until_signal(work()) is None
    assert steps == ["cleaned up"]


STUBBORN = """
import asyncio, sys
from services.cli.interrupt import until_signal

async def work():
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(600)")
    try:
        print("working", flush=True)
        await asyncio.Event().wait()
    finally:
        print("cleaning up", flush=True)
        print(await child.wait(), flush=True)

asyncio.run(until_signal(work()))
"""


async def test_a_second_signal_kills_what_the_clean_up_waits_for() -> None:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", STUBBORN, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"working\n"
    process.send_signal(signal.SIGINT)
    assert await process.stdout.readline() == b"cleaning up\n"
    process.send_signal(signal.SIGINT)
    assert await process.stdout.readline() == b"-9\n"
    assert await process.wait() == 0


async def test_an_error_is_raised_and_the_old_handlers_are_back() -> None:
    async def work() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        await until_signal(work())
    await eventually(lambda: signal.getsignal(signal.SIGINT) is signal.default_int_handler)
