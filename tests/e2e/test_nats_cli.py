"""The real ``nats`` command takes ``nats/*.json`` unchanged, and every command of docs/nats-cli.md does what the page says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from schemas.events import TaskCompleted, TaskReleased, TaskStarted, TaskSubmitted, WorkerReported
from schemas.streams import STREAMS, group_consumer, lane_consumer
from schemas.subjects import credit_subject, heartbeat_subject, stats_key
from services.runtime.bus import Bus
from services.runtime.ids import new_id
from services.runtime.provision import ensure_consumer, provision
from services.runtime.server import EmbeddedServer
from support.builders import build
from support.docker import Unavailable
from support.nats_cli import COMMAND_S, nats_command, start
from support.source import ROOT

pytestmark = pytest.mark.e2e

PAGE = ROOT / "docs" / "nats-cli.md"
CAPABILITY, MODEL, WORKER = "cpu_inference", "smollm2:135m", "w1"


@pytest.fixture(scope="session")
def nats() -> Path:
    try:
        return nats_command()
    except Unavailable as missing:
        pytest.skip(str(missing))


def lines(kind: str) -> list[str]:
    """The command lines of the page's blocks of one kind: ``sh`` must succeed, ``sh refused`` must not."""
    blocks = re.findall(rf"^```{kind}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


SETTING_UP = [line for line in lines("sh") if " add " in line]
LOOKING = [line for line in lines("sh") if " add " not in line]
REFUSED = lines("sh refused")


class Happening:
    """A Headrace in which something happens all the time, so that a live command has something to show."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus

    async def once(self) -> None:
        await self.bus.publish_event(build(TaskCompleted, id=new_id(), by=WORKER), new_id())
        await self.bus.kv_put("stats", stats_key(MODEL, "general", WORKER), b"{}")
        await self.bus.send(credit_subject(WORKER), b"{}")

    async def output(self, nats: Path, line: str) -> tuple[int, str]:
        """Run it while things happen; its exit status and what it said."""
        process = start(nats, self.bus.url, line)
        ended = asyncio.create_task(asyncio.to_thread(process.communicate))
        try:
            async with asyncio.timeout(COMMAND_S):
                while not ended.done():
                    await self.once()
                    await asyncio.wait([ended], timeout=0.1)
        except TimeoutError:
            process.kill()
            await ended
            raise AssertionError(f"{line!r} did not end within {COMMAND_S:g} s") from None
        return process.returncode, ended.result()[0]


@pytest.fixture
async def happening(bus: Bus) -> AsyncIterator[Happening]:
    await ensure_consumer(bus, group_consumer(CAPABILITY, MODEL, cap=4, members=2))
    for kind in (TaskSubmitted, TaskReleased, TaskStarted, TaskCompleted, WorkerReported):
        await bus.publish_event(build(kind, by=WORKER), new_id())
    await bus.publish_stored(heartbeat_subject(WORKER), b"{}", new_id())
    await bus.publish_stored("task.in.me.t1", b"{}", new_id())
    happening = Happening(bus)
    await happening.once()
    yield happening


@pytest.mark.parametrize("line", LOOKING)
async def test_a_command_of_the_page_shows_something(nats: Path, happening: Happening, line: str) -> None:
    status, said = await happening.output(nats, line)
    assert status == 0, said
    assert len(said.strip().splitlines()) >= (2 if "sub " in line else 1), said


@pytest.mark.parametrize("line", REFUSED)
async def test_what_the_page_calls_refused_is_refused(nats: Path, happening: Happening, line: str) -> None:
    before = await happening.bus.last_seq("EVENTS")
    status, said = await happening.output(nats, line)
    assert status != 0, said
    assert re.search("permissions violation|not permitted|no message|group|Priority", said, re.IGNORECASE), said
    first = (await happening.bus.api("STREAM.INFO.EVENTS"))["state"]
    assert (first["first_seq"], first.get("num_deleted", 0)) == (1, 0)
    assert first["last_seq"] >= before


async def test_the_files_set_up_exactly_what_a_router_would(nats: Path, natsd: EmbeddedServer) -> None:
    async with await Bus.connect(natsd.url, name="by-hand") as bus:
        for line in SETTING_UP:
            process = start(nats, natsd.url, line)
            said, _ = await asyncio.to_thread(process.communicate)
            assert process.returncode == 0, f"{line}: {said}"
        assert len(SETTING_UP) == len(STREAMS) + 2
        assert await provision(bus) == []
        assert await ensure_consumer(bus, group_consumer(CAPABILITY, MODEL, cap=4, members=2)) is False
        assert await ensure_consumer(bus, lane_consumer(WORKER, slots=2)) is False
