"""Cases 51 and 53: a job longer than the server's ack wait runs once, and a dead worker's job does not wait longer for it.

Reported: either a redelivery waits the whole ack wait of a generous setting, or a long job is run twice. Here the wait is short,
a worker asks for more time at a third of it, and what becomes of a dead worker's attempt is the router's lease, not the server's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

import services.worker.service
import simulation.world
from schemas.events import AttemptFailed, TaskCompleted, TaskStarted
from schemas.streams import ACK_WAIT_NS, SECOND_NS, group_consumer
from schemas.subjects import group_durable
from services.router.dispatch.live import LEASE_S
from services.router.dispatch.permits import UNLIMITED
from services.runtime.bus import Bus
from services.runtime.provision import ensure_consumer
from services.runtime.server import EmbeddedServer
from simulation.router import Router
from simulation.worker import Worker
from simulation.world import World
from support.backends import Gate, Script, Stub, ollama_done, ollama_frame, ollama_stand_in
from support.eventually import PATIENCE_S, eventually
from support.proving import check_promises, passed, stub_fleet
from support.stub_server import Pace, text_of
from support.worker_bench import Bench, running_worker

MODEL = "m:latest"
SHORT_WAIT_S = 2.0
"""Instead of 30 s, so that a job of some seconds outlasts it several times."""


def test_case_51_a_worker_asks_for_more_time_at_a_third_of_the_wait() -> None:
    assert services.worker.service.IN_PROGRESS_S * 3 <= ACK_WAIT_NS / SECOND_NS <= LEASE_S


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with ollama_stand_in() as server:
        yield server


async def short_bench(bus: Bus) -> Bench:
    """A bench whose group has the short wait."""
    bench = Bench(bus)
    await bench.start()
    await bench.confirm(MODEL)
    group = group_consumer("cpu_inference", MODEL, cap=4, members=4)
    await ensure_consumer(bus, group | {"ack_wait": int(SHORT_WAIT_S * SECOND_NS)})
    return bench


async def redelivered(bench: Bench) -> int:
    info = await bench.bus.api(f"CONSUMER.INFO.TASKS.{group_durable('cpu_inference', MODEL)}")
    return int(info["num_redelivered"])


async def test_case_51_a_job_of_many_ack_waits_is_delivered_and_run_once(
    natsd: EmbeddedServer, bus: Bus, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services.worker.service, "IN_PROGRESS_S", SHORT_WAIT_S / 3)
    bench, gate = await short_bench(bus), Gate()
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_done()]))
    async with running_worker(natsd.url, stub.url, slots=2):
        await bench.ready(free=2)
        await bench.release("t1", MODEL)
        await bench.until_said(TaskStarted, "t1")
        await passed(2.5 * SHORT_WAIT_S)
        assert await redelivered(bench) == 0
        gate.opened.set()
        await bench.until_said(TaskCompleted, "t1")
        await bench.ready(free=2)
    assert len(stub.chats()) == 1
    assert [start.deliveries for start in await bench.said(TaskStarted, "t1")] == [1]


async def test_case_51_a_job_that_is_delivered_again_still_runs_once(
    natsd: EmbeddedServer, bus: Bus, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker with a free slot gets its own item again, because nobody asked for more time."""
    monkeypatch.setattr(services.worker.service, "IN_PROGRESS_S", 3600.0)
    bench, gate = await short_bench(bus), Gate()
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_done()]))
    async with running_worker(natsd.url, stub.url, slots=2), ollama_stand_in() as other:
        await bench.ready(free=2)
        await bench.release("t1", MODEL)
        await bench.until_said(TaskStarted, "t1")
        async with running_worker(natsd.url, other.url, worker="w-2"):
            bench.armable["w-2"] = [group_durable("cpu_inference", MODEL)]
            await bench.ready(worker="w-2")

            async def again() -> bool:
                return await redelivered(bench) > 0

            await eventually(again)
            await passed(1.5 * SHORT_WAIT_S)
            gate.opened.set()
            await bench.until_said(TaskCompleted, "t1")
        assert (len(stub.chats()), len(other.chats())) == (1, 0)
        assert len(await bench.said(TaskStarted, "t1")) == 1
        assert await bench.said(AttemptFailed, "t1") == []


async def test_case_53_an_item_that_waits_for_a_busy_worker_is_not_delivered_before_its_turn(
    natsd: EmbeddedServer, bus: Bus, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken early it would expire in the worker's hands, several times over, while the first job runs."""
    monkeypatch.setattr(services.worker.service, "IN_PROGRESS_S", SHORT_WAIT_S / 3)
    bench, gate = await short_bench(bus), Gate()
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_done()]))
    async with running_worker(natsd.url, stub.url):
        await bench.ready()
        await bench.release("first", MODEL)
        await bench.until_said(TaskStarted, "first")
        await bench.release("second", MODEL)
        await passed(2.5 * SHORT_WAIT_S)
        assert await bench.unacked(MODEL) == (1, 1)
        gate.opened.set()
        await bench.until_said(TaskCompleted, "second")
    assert [start.deliveries for start in await bench.said(TaskStarted, "second")] == [1]
    assert await redelivered(bench) == 0


# -- ten minutes, in virtual time ------------------------------------------------------------------------------------------

LONG_S = 1_000.0
DEATH_S = 120.0


class LongJobs(World):
    """Jobs of about ten minutes on four machines, of which one dies for good in the middle of its job."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, tasks=5)
        self.routers = [Router(self, "r1", UNLIMITED)]
        self.workers = {name: Worker(self, name, ("m1", "m2", "m3"), 1, LONG_S) for name in ("a", "b", "c", "d")}

    def _plan_faults(self) -> None:
        self.kernel.after(DEATH_S, None, lambda: self.kernel.kill(self.workers["a"].process))

    def starts(self) -> list[tuple[TaskStarted, float]]:
        return [(event, at) for _, event, at in self.server.events if isinstance(event, TaskStarted)]


def test_case_51_jobs_of_ten_minutes_run_once_and_a_dead_machines_job_soon_runs_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simulation.world, "LIMITS", (UNLIMITED,))
    monkeypatch.setattr(simulation.world, "HORIZON_S", 20_000.0)
    given_up = long = 0
    for seed in range(6):
        world = LongJobs(seed)
        report = world.run()
        assert report.violations == []
        assert set(world.runs.values()) == {1}
        lost = [(e, at) for _, e, at in world.server.events if isinstance(e, AttemptFailed) and e.failure == "lost"]
        assert {event.worker for event, _ in lost} <= {"a"}
        assert all(DEATH_S < at < DEATH_S + LEASE_S + 5.0 for _, at in lost)
        given_up += len(lost)
        long += report.ended_s > 600.0
    assert given_up >= 3 and long >= 3


# -- thirty real seconds ---------------------------------------------------------------------------------------------------


@pytest.mark.torture
async def test_case_51_a_job_longer_than_the_real_ack_wait_runs_once_while_another_machine_dies(
    tmp_path: Path, scale: Callable[[int, int], int]
) -> None:
    seconds = scale(40, 100)
    machines = {"long": Pace(token_s=0.5), "dies": Pace(token_s=0.5), "heir": Pace(token_s=0.01)}
    async with stub_fleet(tmp_path, machines) as (proof, servers):
        job = await proof.submit(max_tokens=2 * seconds, worker="long")
        held = await proof.submit(max_tokens=400, worker="heir")  # so that the next one goes to the machine that dies
        orphan = await proof.submit(max_tokens=2 * seconds)
        status = await proof.until(orphan, "running")
        assert status["worker"] == (await proof.workers())["dies"]["id"]
        await proof.kill("worker dies")
        await proof.until_said(TaskStarted, orphan, within_s=LEASE_S + PATIENCE_S, nth=2)
        ends = await asyncio.gather(*(proof.ended(task, within_s=seconds + PATIENCE_S) for task in (job, held, orphan)))
        assert [end["worker_name"] for end in ends] == ["long", "heir", "heir"]
        assert ends[0]["answer"]["text"] == text_of(2 * seconds)
        log = await proof.log()
        check_promises(log, [job, held, orphan])
        (start,) = [e.event for e in log if isinstance(e.event, TaskStarted) and e.event.task == job]
        assert start.deliveries == 1
        assert servers["long"].most == 1
