"""Supervision of real, trivial child processes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from services.cli import supervision
from services.cli.exits import CommandFailed
from services.cli.supervision import Part, Supervisor
from support.eventually import eventually


class Scripts:
    """Writes modules to run and makes parts of them; collects what the supervisor says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []

    def part(self, name: str, source: str, *, drain_s: float = 5.0) -> Part:
        """Ready once the script has made the file ``<name>.up``."""
        (self.folder / f"script_{name}.py").write_text(source)
        flag = self.folder / f"{name}.up"

        async def ready() -> str | None:
            return "with a flag" if flag.exists() else None

        return Part(
            name=name,
            module=f"script_{name}",
            arguments=(str(flag),),
            environment={"PYTHONPATH": os.pathsep.join([str(self.folder), str(Path(__file__).parents[3])])},
            log=self.folder / "logs" / f"{name}.log",
            drain_s=drain_s,
            ready=ready,
        )


STEADY = "import pathlib, sys, time\npathlib.Path(sys.argv[1]).touch()\ntime.sleep(600)\n"
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + STEADY
BROKEN = "raise SystemExit('the port 8420 is taken by somebody else')\n"


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


@pytest.fixture
async def supervisor(scripts: Scripts) -> AsyncIterator[Supervisor]:
    supervisor = Supervisor(scripts.said.append, backoff_s=(0.01,))
    yield supervisor
    await supervisor.stop()


async def test_parts_are_ready_together_and_said_one_by_one(scripts: Scripts, supervisor: Supervisor) -> None:
    await supervisor.start([scripts.part("one", STEADY), scripts.part("two", STEADY)])
    assert sorted(scripts.said) == ["one ready: with a flag", "two ready: with a flag"]


async def test_a_part_that_ends_while_starting_fails_with_its_last_words(
    scripts: Scripts, supervisor: Supervisor
) -> None:
    with pytest.raises(CommandFailed, match="the port 8420 is taken by somebody else"):
        await supervisor.start([scripts.part("one", STEADY), scripts.part("broken", BROKEN)])


ERROR = '{"level": "error", "error": "routes.toml, line 3: no such option", "event": "cannot go on"}'


async def test_why_a_part_ended_is_the_error_of_this_run_and_not_its_log_lines_or_a_former_run(
    scripts: Scripts, supervisor: Supervisor
) -> None:
    part = scripts.part("broken", f"print('''{ERROR}''')\nprint('SettingsError: the same')\nraise SystemExit(1)\n")
    part.log.parent.mkdir()
    part.log.write_text('{"level": "error", "error": "of yesterday"}\n{"level": "info", "event": "ready"}\n')
    with pytest.raises(CommandFailed) as failed:
        await supervisor.start([part])
    assert str(failed.value) == "broken ended while starting: routes.toml, line 3: no such option"


async def test_the_answer_of_a_stranger_at_its_address_does_not_make_a_part_ready(
    scripts: Scripts, supervisor: Supervisor
) -> None:
    part = replace(scripts.part("router", "import time\ntime.sleep(0.2)\n" + BROKEN), own_word=True)
    (scripts.folder / "router.up").touch()  # as if somebody else answered
    with pytest.raises(CommandFailed, match="router ended while starting"):
        await supervisor.start([part])
    assert scripts.said == []


async def test_a_part_is_ready_once_it_says_so_and_answers(scripts: Scripts, supervisor: Supervisor) -> None:
    await supervisor.start([replace(scripts.part("router", SAYS_READY + STEADY), own_word=True)])
    assert scripts.said == ["router ready: with a flag"]


async def test_a_part_that_comes_later_and_breaks_is_said_and_tried_again_and_ends_nobody(
    scripts: Scripts, supervisor: Supervisor
) -> None:
    await supervisor.start([scripts.part("one", STEADY)])
    await supervisor.add(scripts.part("broken", BROKEN))
    assert any("the port 8420 is taken by somebody else" in line for line in scripts.said)
    await eventually(lambda: supervisor.children["broken"].restarts >= 2)
    assert supervisor.children["one"].running


async def test_a_part_that_comes_later_is_ready_in_its_own_time(scripts: Scripts, supervisor: Supervisor) -> None:
    late = (
        "import pathlib, sys, time\nwhile not pathlib.Path(sys.argv[1] + '.go').exists(): time.sleep(0.01)\n" + STEADY
    )
    await supervisor.add(scripts.part("late", late), within_s=0.2)
    assert scripts.said[0].startswith("not ready after 0.2 s: late wrote last: nothing (see ")
    assert supervisor.children["late"].running


WAITING = """
import sys, time
print('{"event":"waiting for a router to make the streams","level":"info","timestamp":"2026-01-01T10:00:07.5Z"}', flush=True)
print('a line of somebody else', flush=True)
open(sys.argv[1] + '.said', 'w').close()
time.sleep(600)
"""


async def test_who_never_gets_ready_is_named_with_what_it_wrote_last_and_the_ready_are_not(
    scripts: Scripts, supervisor: Supervisor
) -> None:
    silent, waiting = scripts.part("silent", "import time\ntime.sleep(600)\n"), scripts.part("waiting", WAITING)
    starting = asyncio.create_task(supervisor.start([scripts.part("one", STEADY), silent, waiting], within_s=2.0))
    with pytest.raises(CommandFailed) as failed:
        await starting
    assert (scripts.folder / "waiting.up.said").exists()
    assert str(failed.value).splitlines() == [
        "not ready after 2 s:",
        "silent wrote last: nothing",
        "waiting wrote last: 10:00:07 waiting for a router to make the streams | a line of somebody else",
    ]
    assert failed.value.hint == f"see {silent.log}, {waiting.log}"


SAYS_READY = 'print(\'{"action":"ready","event":"ready"}\', flush=True)\n'


async def test_who_says_ready_where_nobody_confirms_it_is_told_apart(scripts: Scripts, supervisor: Supervisor) -> None:
    part = replace(scripts.part("router", f"{SAYS_READY}import time\ntime.sleep(600)\n"), own_word=True)
    with pytest.raises(CommandFailed, match="router says that it is ready, but nobody confirms it; wrote last: ready"):
        await supervisor.start([part], within_s=2.0)


async def test_one_that_was_ready_and_ended_is_not_waited_for_by_the_others(
    scripts: Scripts, supervisor: Supervisor
) -> None:
    """A worker is ready when the router knows it: without the router that would be never, and nobody would know why."""
    brief = STEADY.replace("time.sleep(600)", "time.sleep(0.3)\nraise SystemExit('the disk is full')")
    with pytest.raises(CommandFailed, match="router ended while starting: the disk is full"):
        await supervisor.start(
            [scripts.part("router", brief), scripts.part("worker", "import time\ntime.sleep(600)\n")]
        )


SERVICE = """
from services.runtime.lifecycle import run_service
async def main(life):
    life.ready()
    await life.until_draining()
run_service(main)
"""


async def test_a_service_of_ours_is_ready_once_it_says_so_as_services_say_it(
    scripts: Scripts, supervisor: Supervisor
) -> None:
    """The log's form is written in one place and read in another: where they differ nothing ever starts."""
    await supervisor.start([replace(scripts.part("projector", SERVICE), ready=None)])
    assert scripts.said == ["projector ready"]


async def test_a_killed_part_comes_back_and_is_said(scripts: Scripts, supervisor: Supervisor) -> None:
    await supervisor.start([scripts.part("one", STEADY)])
    first = supervisor.children["one"].pid
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: supervisor.children["one"].running and supervisor.children["one"].pid != first)
    await eventually(lambda: len(scripts.said) == 3)
    assert scripts.said[1] == "one ended unexpectedly (signal SIGKILL); starting it again in 0.01 s"
    assert supervisor.children["one"].restarts == 1


async def test_stopping_leaves_nothing_running_not_even_the_stubborn_and_the_paused(scripts: Scripts) -> None:
    supervisor = Supervisor(scripts.said.append)
    parts = [scripts.part("stubborn", STUBBORN, drain_s=0.2), scripts.part("paused", STEADY)]
    await supervisor.start(parts)
    pids = [child.pid for child in supervisor.children.values()]
    os.kill(supervisor.children["paused"].pid, signal.SIGSTOP)
    await supervisor.stop()
    assert not any(psutil.pid_exists(pid) for pid in pids)


async def test_a_restart_on_request_gives_a_new_process(scripts: Scripts, supervisor: Supervisor) -> None:
    supervisor = Supervisor(scripts.said.append, restart=False)
    await supervisor.start([scripts.part("one", STEADY)])
    first = supervisor.children["one"].pid
    await supervisor.restart("one")
    assert supervisor.children["one"].running
    assert supervisor.children["one"].pid != first
    await supervisor.stop()


async def test_children_end_when_their_parent_is_killed(scripts: Scripts, tmp_path: Path) -> None:
    """The parent is a process of its own that gets SIGKILL: nobody is left to stop its child but the kernel."""
    part = scripts.part("orphan", STEADY)
    source = (
        "import os, subprocess, sys, time\n"
        "command = [sys.executable, '-m', 'services.cli.child', str(os.getpid()), 'script_orphan']\n"
        f"child = subprocess.Popen([*command, {str(tmp_path / 'orphan.up')!r}])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", source], env={**os.environ, **part.environment}) as parent:
        await eventually((tmp_path / "orphan.up").exists)
        pid = int(await eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
        parent.kill()
        await asyncio.to_thread(parent.wait)
    await eventually(lambda: is_gone(pid))


def is_gone(pid: int) -> bool:
    """Ended, whether or not anybody has taken note of it."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


async def test_a_part_that_does_not_end_at_once_is_named_with_its_time(scripts: Scripts) -> None:
    supervisor = Supervisor(scripts.said.append)
    await supervisor.start([scripts.part("stubborn", STUBBORN, drain_s=1.5)])
    await supervisor.stop()
    assert scripts.said[-1] == "waiting for stubborn, at most 1.5 s"


async def test_a_long_stop_is_told_again_with_what_is_left_of_it(
    scripts: Scripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervision, "SAY_AGAIN_S", 0.1)
    stopped = Supervisor(scripts.said.append)
    await stopped.start([scripts.part("stubborn", STUBBORN, drain_s=600.0)])
    stopping = asyncio.create_task(stopped.stop())
    await eventually(lambda: len(scripts.said) >= 4)
    os.kill(stopped.children["stubborn"].pid, signal.SIGKILL)
    await stopping
    ready, first, *more = scripts.said
    assert (ready, first) == ("stubborn ready: with a flag", "waiting for stubborn, at most 600 s")
    assert all(line.startswith("still waiting for stubborn, at most 5") for line in more)
