"""Case 47: a machine's clock is wrong by ten minutes. Who is alive, what is measured and what is decided stay as they are.

Reported: skew of two minutes made a worker "lost". Here no time of a worker's is compared with anybody else's: a word counts from
when it arrived, a fact from when the server stored it, a duration by one machine's monotonic clock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schemas import codec
from schemas.cells import Cell, fold
from schemas.events import AnyEvent, AttemptFailed, DispatcherElected, TaskSubmitted, WorkerLoad, WorkerReported
from schemas.samples import sample_of
from schemas.statistics import CellKey, Sample, key_of
from schemas.subjects import heartbeat_subject
from services.cli.parts import BackendAt, Surroundings, worker_part
from services.cli.stack import Stack
from services.router.desk import Desk
from services.router.dispatch.heard import PULSE_S
from services.router.dispatch.live import FRESH_S
from services.router.dispatch.permits import UNLIMITED
from services.router.policy.request import request_of
from services.runtime.bus import Bus
from simulation.world import World
from support.builders import build
from support.eventually import eventually
from support.history import history
from support.machines import DESK, LAPTOP, MACHINES, MODELS
from support.proving import Proof, measured
from support.stub_server import Pace, StubServer

TEN_MINUTES = 600.0
SKEWS = [
    {},
    {DESK.worker: TEN_MINUTES, LAPTOP.worker: -TEN_MINUTES},
    {DESK.worker: -TEN_MINUTES, LAPTOP.worker: TEN_MINUTES},
]


def told_by(off_s: dict[str, float], event: Any) -> Any:
    """The event as it would be if its producer's clock were wrong."""
    return msgspec.structs.replace(event, at=event.at + off_s.get(event.by, 0.0))


# -- decisions -------------------------------------------------------------------------------------------------------------


def a_desk(off_s: dict[str, float]) -> tuple[Desk, float]:
    """A router's desk after a log and a round of heartbeats; and the true time."""
    ids = (f"e{n}" for n in count())
    desk = Desk("router-1", slider=1.0, limits=UNLIMITED, new_id=lambda: next(ids))
    log = [(told_by(off_s, entry.event), entry.seq, entry.at_us) for entry in history(7, 60)]
    unix = log[-1][2] / 1e6 + 1.0
    desk.fold(log)
    for cell in cells(log):
        desk.put_cell(cell)
    for machine in MACHINES:
        load = build(WorkerLoad, by=machine.worker, worker=machine.worker, boot=machine.boot, at=unix,
                     others_use=machine.others_use, resident=(MODELS[0].name,), credit=None)  # fmt: skip
        desk.live.hear_load(told_by(off_s, load), desk.now)
    return desk, unix


def cells(log: list[tuple[AnyEvent, int, int]]) -> Iterator[Cell]:
    """What the projector makes of the log."""
    samples: dict[CellKey, list[Sample]] = {}
    for event, seq, at_us in log:
        if sample := sample_of(event, seq, at_us):
            samples.setdefault(key_of(sample), []).append(sample)
    return (fold(group) for group in samples.values())


def test_case_47_decisions_are_the_same_whatever_the_workers_clocks_say() -> None:
    asked = [entry.event for entry in history(8, 25) if isinstance(entry.event, TaskSubmitted)]
    seen = []
    for off_s in SKEWS:
        desk, unix = a_desk(off_s)
        decisions = [desk.decision(request_of(task), task.task, unix) for task in asked]
        seen.append((desk.fleet(unix), decisions))
    assert all({c.worker for c in decision.candidates} == {DESK.worker, LAPTOP.worker} for decision in seen[0][1])
    assert seen[1] == seen[0]
    assert seen[2] == seen[0]


def test_case_47_silence_counts_from_the_last_arrival() -> None:
    """Not from what the words say: neither does a clock that is behind make a machine silent, nor one ahead keep it alive."""
    for off_s in SKEWS:
        desk, unix = a_desk(off_s)
        pulses = int(FRESH_S / PULSE_S)
        for n in range(pulses + 1):
            desk.beat(n * PULSE_S, unix)
        assert {view.alive for view in desk.fleet(unix).workers.values()} == {True}
        desk.beat((pulses + 1) * PULSE_S, unix)
        assert {view.alive for view in desk.fleet(unix).workers.values()} == {False}


# -- the protocol ----------------------------------------------------------------------------------------------------------


def history_of(seed: int, off_s: dict[str, float]) -> list[tuple[str, AnyEvent, float]]:
    """One seeded history with its deaths and freezes, its workers' clocks wrong; without the field that only shows them."""
    world = World(seed)
    publish = world.server.publish
    world.server.publish = lambda event, msg_id: publish(told_by(off_s, event), msg_id)  # type: ignore[method-assign]
    assert world.run().violations == []
    return [
        (msg_id, told_by({}, msgspec.structs.replace(event, at=0.0)), at) for msg_id, event, at in world.server.events
    ]


@pytest.mark.parametrize("seed", range(6))
def test_case_47_every_history_of_kills_and_freezes_goes_the_same_way(seed: int) -> None:
    straight = history_of(seed, {})
    wrong = dict.fromkeys(("fast", "mid"), TEN_MINUTES) | {"slow": -TEN_MINUTES}
    assert any(event.by in wrong for _, event, _ in straight)
    assert history_of(seed, wrong) == straight


# -- real processes --------------------------------------------------------------------------------------------------------

OFF = {"ahead": TEN_MINUTES, "behind": -TEN_MINUTES, "right": 0.0}
PACES = {"ahead": Pace(token_s=0.002), "behind": Pace(token_s=0.02), "right": Pace(token_s=0.02)}


async def test_case_47_real_workers_with_wrong_clocks_are_alive_measured_and_chosen(tmp_path: Path) -> None:
    """The fastest is ten minutes ahead. It gets what it would get, and what it did is as young as it is."""
    async with AsyncExitStack() as running:
        stack = Stack(tmp_path, sync="10s", restart=False)
        await running.enter_async_context(stack)
        around = Surroundings(tmp_path, stack.nats_url, stack.router_url)
        parts = []
        for name, off_s in OFF.items():
            server = await running.enter_async_context(StubServer({"stub": PACES[name]}))
            part = worker_part(around, BackendAt(name, server.url, name))
            clock = {"CLOCK_OFF_S": str(off_s), "PYTHONPATH": str(Path(__file__).parents[1])}
            parts.append(dataclasses.replace(part, module="support.off_clock", environment=part.environment | clock))  # type: ignore[operator]
        await stack.supervisor.start(parts)
        running.push_async_callback(stack.supervisor.stop)  # workers before their servers
        proof = Proof(stack)
        running.push_async_callback(proof.http.aclose)
        await proof.quiet()
        ids = {name: worker["id"] for name, worker in (await proof.workers()).items()}
        for name, worker in ids.items():
            assert await clock_error(proof, worker) == pytest.approx(OFF[name], abs=5.0)
        await proof.all_ended([await proof.submit(max_tokens=40, worker=name) for name in OFF])
        await eventually(lambda: measured(proof, 3))
        ends = []
        for _ in range(6):
            await proof.quiet()
            ends.append(await proof.ended(await proof.submit(max_tokens=40)))
        assert {end["worker_name"] for end in ends} == {"ahead"}
        rows = (await proof.http.get("/stats")).json()["rows"]
        assert {row["worker_name"] for row in rows} == set(OFF)
        assert all(0 <= row["age_s"] < 60 for row in rows)
        for worker in (await proof.workers()).values():
            assert worker["state"] == "ready" and 0 <= worker["credit_age_s"] < FRESH_S
        log = await proof.log()
        reports = [e for e in log if isinstance(e.event, WorkerReported)]
        assert {round((e.event.at - e.at_us / 1e6) / TEN_MINUTES) for e in reports} == {-1, 0, 1}
        assert [e.event for e in log if isinstance(e.event, AttemptFailed)] == []
        assert sum(isinstance(e.event, DispatcherElected) for e in log) == 1


async def clock_error(proof: Proof, worker: str) -> float:
    """How far a heartbeat's own time is from that of its storage."""
    async with await Bus.connect(proof.stack.nats_url, name="test") as bus:
        stored = await bus.last_for("HEARTBEATS", heartbeat_subject(worker))
    assert stored is not None
    load = codec.decode(stored.data)
    assert isinstance(load, WorkerLoad)
    return load.at - stored.at_us / 1e6
