"""The projector as a process on a real nats-server: published cells, snapshots, answers, restarts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import msgspec
import pytest

from schemas import codec, subjects
from schemas.events import TaskCompleted, WorkerLoad
from schemas.statistics import Cell, Statistics, effective
from services.runtime.bus import Bus
from services.runtime.feed import Feed
from services.runtime.provision import provision
from services.runtime.server import EmbeddedServer
from services.runtime.stored import StoredMessage
from support.builders import build
from support.eventually import eventually
from support.folded import expected, held
from support.history import many
from support.projecting import ProjectorProcess, store_events
from support.stored_log import stored_log

LOG = list(many(1_200, tasks=250))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def published(bus: Bus) -> dict[Any, Cell]:
    cells: dict[Any, Cell] = {}

    async def take(messages: list[StoredMessage]) -> None:
        for message in messages:
            if subjects.is_stats_position(message.subject):
                continue
            cell = msgspec.json.decode(message.data, type=Cell)
            assert message.subject == f"$KV.stats.{subjects.stats_key(cell.model, cell.domain, cell.worker)}"
            cells[cell.model, cell.domain, cell.worker] = cell

    async with Feed(bus, "KV_stats", on_batch=take, last_per_subject=True) as feed:
        await feed.caught_up.wait()
    return cells


async def test_tables_and_published_cells_are_the_fold_of_the_log(natsd: EmbeddedServer, bus: Bus, data: Path) -> None:
    last = await store_events(bus, LOG)
    fold = expected(await stored_log(bus))
    async with ProjectorProcess(natsd.url, data) as projector:
        await projector.reached(bus, last)

        async def all_out() -> bool:
            return await published(bus) == fold["cells"]

        await eventually(all_out)
        assert projector.stop() == 0
    assert held(projector.snapshot) == fold


async def test_statistics_follow_a_new_completion_within_a_moment(natsd: EmbeddedServer, bus: Bus, data: Path) -> None:
    async with ProjectorProcess(natsd.url, data) as projector:
        await projector.reached(bus, 0)
        done = build(TaskCompleted, model="qwen3", domain="code", worker="w1")
        await bus.publish_event(done, subjects.end_id(done.task))

        async def known() -> bool:
            stats = Statistics((await published(bus)).values())
            return effective(stats, "qwen3", "code", "w1", model_bytes=None, now_us=10**16).decode.level == "cell"

        await eventually(known)


async def test_case_55_a_command_line_reads_the_snapshot_while_the_projector_runs(
    natsd: EmbeddedServer, bus: Bus, data: Path
) -> None:
    """Another process opens it at any time; the live file is nobody's but the projector's."""
    last = await store_events(bus, LOG)
    async with ProjectorProcess(natsd.url, data, HEADRACE_PROJECTOR_SNAPSHOT_S="0.1") as projector:
        await projector.reached(bus, last)

        async def tasks() -> int:
            seen = await _elsewhere(projector.snapshot, "print(len(file.execute('FROM tasks').fetchall()))")
            assert seen.returncode == 0, seen.stderr
            return int(seen.stdout)

        await eventually(tasks)
        with duckdb.connect(str(projector.snapshot), read_only=True) as reader:
            opened = len(reader.execute("FROM tasks").fetchall())

            async def more() -> bool:
                return await tasks() > opened

            again = await store_events(bus, many(500, seed=9))
            await projector.reached(bus, again)
            await eventually(more)
            assert len(reader.execute("FROM tasks").fetchall()) == opened, "an open reader keeps the snapshot it opened"
        assert "Could not set lock" in (await _elsewhere(projector.directory / "live.duckdb", "")).stderr


async def _elsewhere(file: Path, then: str) -> subprocess.CompletedProcess[str]:
    """Open the file read-only in another process."""
    code = f"import duckdb; file = duckdb.connect({str(file)!r}, read_only=True); {then}"
    command = [sys.executable, "-c", code]
    return await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)


async def test_an_old_task_is_answered_with_its_stored_events(natsd: EmbeddedServer, bus: Bus, data: Path) -> None:
    last = await store_events(bus, LOG)
    log = [codec.decode(message.data) for message in await stored_log(bus)]
    done = next(event for event in log if isinstance(event, TaskCompleted) and event.lane == "any")
    async with ProjectorProcess(natsd.url, data) as projector:
        await projector.reached(bus, last)
        reply = msgspec.json.decode(await bus.request("rpc.projector.task", msgspec.json.encode({"task": done.task})))
        nobody = msgspec.json.decode(await bus.request("rpc.projector.task", b'{"task":"never"}'))
        wrong = msgspec.json.decode(await bus.request("rpc.projector.task", b'{"tsk":1}'))
    assert reply["found"] is True
    types = [event["type"] for event in reply["events"]]
    assert types[:2] == ["task.submitted", "task.routed"] and "task.completed" in types
    mine = [codec.encode(event) for event in log if getattr(event, "task", None) == done.task]
    assert set(map(msgspec.json.encode, map(codec.decode, mine))) <= {
        codec.encode(codec.decode(msgspec.json.encode(event))) for event in reply["events"]
    }
    assert (nobody["found"], nobody["events"]) == (False, [])
    assert wrong["found"] is False and "tsk" in wrong["error"]


async def test_heartbeats_become_minutes(natsd: EmbeddedServer, bus: Bus, data: Path) -> None:
    beat = build(WorkerLoad, worker="w1", cpu_use=None)
    await bus.publish_stored(subjects.heartbeat_subject("w1"), codec.encode(beat), beat.id)
    async with ProjectorProcess(natsd.url, data, HEADRACE_PROJECTOR_HEARTBEATS_S="0") as projector:

        async def seen() -> bool:
            status = await projector.status(bus)
            return status is not None and status["heartbeats"] == 1

        await eventually(seen)
        projector.stop()
    with duckdb.connect(str(projector.snapshot), read_only=True) as reader:
        row = reader.execute("SELECT worker, beats, cpu_use FROM heartbeats_1m").fetchall()
    assert row == [("w1", 1, None)]


async def test_cells_are_sent_again_to_an_emptied_bucket(natsd: EmbeddedServer, bus: Bus, data: Path) -> None:
    last = await store_events(bus, LOG)
    async with ProjectorProcess(natsd.url, data) as projector:
        await projector.reached(bus, last)
        await eventually(lambda: published(bus))
        projector.stop()
    before = await published(bus)
    await bus.api("STREAM.PURGE.KV_stats")
    async with ProjectorProcess(natsd.url, data):

        async def back() -> bool:
            return await published(bus) == before

        await eventually(back)


async def test_another_log_is_projected_from_its_start(
    natsd: EmbeddedServer, bus: Bus, data: Path, tmp_path: Path
) -> None:
    last = await store_events(bus, LOG)
    async with ProjectorProcess(natsd.url, data) as projector:
        await projector.reached(bus, last)
        projector.stop()
    async with (
        EmbeddedServer(tmp_path / "other", sync="10s") as other,
        await Bus.connect(other.url, name="test") as there,
    ):
        await provision(there)
        few = await store_events(there, many(100, seed=4))
        async with ProjectorProcess(other.url, data) as projector:
            await eventually(lambda: _exactly(projector, there, few))
            projector.stop()
        assert held(projector.snapshot) == expected(await stored_log(there))


async def _exactly(projector: ProjectorProcess, bus: Bus, position: int) -> bool:
    status = await projector.status(bus)
    return status is not None and status["position"] == position


async def test_it_waits_for_the_streams_and_leaves_when_asked(natsd: EmbeddedServer, data: Path) -> None:
    projector = ProjectorProcess(natsd.url, data)
    projector.start()
    try:
        await eventually(lambda: "waiting for a router" in projector.log)
    finally:
        assert projector.stop() == 0
