"""Bench work through a real router and a real worker: one task, one execution, one sample, on the machine that was meant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from schemas.events import Options, TaskCancelled, TaskCompleted, TaskReleased, TaskRouted, TaskSubmitted
from schemas.samples import sample_of
from schemas.work import Body
from services.benchmarker.asking import Asking, Work
from services.router.service import RouterService
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from support.backends import Hang, Script, Stub, ollama_frame, ollama_stand_in
from support.eventually import PATIENCE_S, eventually
from support.routers import MODEL, dispatching, question, running_router, whole_log, with_workers
from support.worker_bench import running_worker


def work(worker: str = "w-bench", **fields: object) -> Work:
    told = {"body": Body(messages=({"role": "user", "content": "Count to ten."},)), "options": Options(max_tokens=3)}
    given = {"purpose": "probe", "model": MODEL, "worker": worker, "domain": "general", "reason": "joined"}
    return Work(**{**given, **told, **fields})  # type: ignore[arg-type]


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with ollama_stand_in() as server:
        yield server


@pytest.fixture
async def router(natsd: EmbeddedServer) -> AsyncIterator[RouterService]:
    async with running_router(natsd.url) as service:
        await dispatching(service)
        yield service


@pytest.fixture
async def asking(router: RouterService, bus: Bus) -> AsyncIterator[Asking]:
    async with Asking(bus) as opened:
        yield opened


async def test_bench_work_runs_on_the_machine_that_it_names_and_is_one_sample(
    natsd: EmbeddedServer, router: RouterService, asking: Asking, stub: Stub, bus: Bus
) -> None:
    async with (
        running_worker(natsd.url, stub.url, worker="w1"),
        running_worker(natsd.url, stub.url, worker="w2"),
    ):
        await with_workers(router, 2)
        for worker in ("w2", "w1", "w2"):
            result = await asyncio.wait_for(asking.run(work(worker)), PATIENCE_S)
            assert result.failure is None and result.answer is not None
            assert result.answer.text == "word0 word1 word2 "
            assert result.completed is not None and result.completed.worker == result.answer.worker == worker
    log = await whole_log(bus)
    submitted = [e for e in log if isinstance(e, TaskSubmitted)]
    assert {(e.client, e.kind, e.urgency, e.domain.label) for e in submitted} == {
        ("benchmarker", "bench", "background", "general")
    }
    assert all(e.bench is not None and (e.bench.purpose, e.bench.reason) == ("probe", "joined") for e in submitted)
    assert all(e.sizes.prompt_tokens == 4 and e.language == "en" for e in submitted)
    released = [e for e in log if isinstance(e, TaskReleased)]
    assert [(e.lane, e.expected_worker) for e in released] == [("w2", "w2"), ("w1", "w1"), ("w2", "w2")]
    assert all({"client:benchmarker", f"model:{MODEL}"} < set(e.permits) for e in released)
    routed = [e for e in log if isinstance(e, TaskRouted)]
    assert [{c.worker for c in e.candidates} for e in routed] == [{"w2"}, {"w1"}, {"w2"}]
    assert all([r.reason.partition(":")[0] for r in e.removed] == ["worker"] for e in routed)
    samples = [sample_of(e, n, n) for n, e in enumerate(log, 1)]
    found = [s for s in samples if s is not None]
    assert [(s.worker, s.domain, s.task_kind, s.decode_tok) for s in found] == [
        (worker, "general", "bench", 3) for worker in ("w2", "w1", "w2")
    ]


async def test_who_gives_up_takes_the_running_task_with_him(
    natsd: EmbeddedServer, router: RouterService, asking: Asking, stub: Stub, bus: Bus
) -> None:
    stub.scripts.append(Script([ollama_frame("a"), Hang()]))
    async with running_worker(natsd.url, stub.url):
        await with_workers(router, 1)
        running = asyncio.create_task(asking.run(work()))
        await eventually(lambda: bool(stub.chats()))
        running.cancel("real work waits")
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.wait_for(stub.client_gone.wait(), PATIENCE_S)
        real = await router.submit(question())
        await eventually(lambda: (t := router.desk.state.task(real.task)) is not None and t.terminal is not None)
    ends = [e for e in await whole_log(bus) if isinstance(e, TaskCancelled | TaskCompleted)]
    assert [getattr(e, "reason", "completed") for e in ends] == ["real work waits", "completed"]


async def test_work_that_waits_for_a_machine_that_is_not_there_ends_at_its_deadline_or_when_given_up(
    router: RouterService, asking: Asking, bus: Bus
) -> None:
    late = await asyncio.wait_for(asking.run(work("nobody", deadline_s=0.5)), PATIENCE_S)
    assert late.failure is not None and "deadline" in late.failure and late.completed is None
    waiting = asyncio.create_task(asking.run(work("nobody")))

    def is_there() -> bool:
        """The log may have told us of the first one's end before it told the router."""
        return any(task != late.task for task in router.desk.state.tasks)

    await eventually(is_there)
    waiting.cancel()
    await eventually(lambda: not router.desk.state.tasks)
    assert [e.reason for e in await whole_log(bus) if isinstance(e, TaskCancelled)] == ["the benchmarker gave it up"]


async def test_leaving_cancels_what_is_still_out(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus
) -> None:
    stub.scripts.append(Script([ollama_frame("a"), Hang()]))
    async with running_worker(natsd.url, stub.url):
        await with_workers(router, 1)
        async with Asking(bus) as asking:
            running = asyncio.create_task(asking.run(work()))
            await eventually(lambda: bool(stub.chats()))
        await asyncio.wait_for(stub.client_gone.wait(), PATIENCE_S)
        running.cancel()
