"""A machine that somebody takes out, on a real nats-server with real workers: nothing is lost, nothing new begins there."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from schemas.events import TaskReleased, WorkerPaused, WorkerResumed
from services.router.service import RouterService
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from support.backends import Gate, Script, Stub, ollama_done, ollama_frame, ollama_stand_in
from support.eventually import eventually
from support.routers import dispatching, end_of, question, running_router, started, whole_log, with_workers
from support.worker_bench import running_worker


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with ollama_stand_in() as server:
        yield server


def reason_of(router: RouterService, task: str) -> str:
    """Why it waits; nothing while the router's fold does not have it."""
    return next((str(status.reason) for status in router.queue() if status.task == task), "")


async def test_what_runs_on_a_paused_machine_ends_and_what_only_it_could_take_waits_for_its_return(
    natsd: EmbeddedServer, stub: Stub
) -> None:
    gate = Gate()
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_done()]))
    async with running_worker(natsd.url, stub.url):
        async with running_router(natsd.url) as first:
            await dispatching(first)
            await with_workers(first, 1)
            runs = (await first.submit(question())).task
            await started(first, runs)
            await first.pause("w-bench", None, "a game")
            gate.opened.set()
            assert (await end_of(first, runs)).status.state == "completed"
            waits = (await first.submit(question())).task
            await eventually(lambda: "paused" in reason_of(first, waits))
        async with running_router(natsd.url) as second:  # a pause is a fact
            await dispatching(second)
            await with_workers(second, 1)
            view = second.fleet().workers["w-bench"]
            assert (view.paused, view.paused_until_us) == (True, None)
            await eventually(lambda: "paused" in reason_of(second, waits))
            await second.resume("w-bench", "the game is over")
            assert (await end_of(second, waits)).status.state == "completed"


async def test_others_take_the_work_of_a_paused_machine_and_the_preview_says_why(
    natsd: EmbeddedServer, stub: Stub, bus: Bus
) -> None:
    async with (
        running_router(natsd.url) as router,
        running_worker(natsd.url, stub.url, worker="w-out"),
        running_worker(natsd.url, stub.url, worker="w-in"),
    ):
        await dispatching(router)
        await with_workers(router, 2)
        await router.pause("w-out", 7_200.0, "")
        for _ in range(4):
            task = (await router.submit(question())).task
            assert (await end_of(router, task)).status.worker == "w-in"
        decision = router.preview(question()).decision
        assert decision is not None
        (reason,) = {removal.reason for removal in decision.removed if removal.worker == "w-out"}
        assert reason == f"paused: takes no new work {router.fleet().workers['w-out'].pause_words}"
        assert next(given for given in decision.inputs if given.worker == "w-out").paused
    released = [event for event in await whole_log(bus) if isinstance(event, TaskReleased)]
    assert all("w-out" not in event.holders for event in released)


async def test_a_pause_for_a_time_ends_by_a_fact_of_the_dispatchers(
    natsd: EmbeddedServer, stub: Stub, bus: Bus
) -> None:
    async with running_router(natsd.url) as router, running_worker(natsd.url, stub.url):
        await dispatching(router)
        await with_workers(router, 1)
        await router.pause("w-bench", 0.3, "")
        task = (await router.submit(question())).task
        assert (await end_of(router, task)).status.state == "completed"
    said = [event for event in await whole_log(bus) if isinstance(event, WorkerPaused | WorkerResumed)]
    assert [(type(event), event.reason) for event in said] == [(WorkerPaused, ""), (WorkerResumed, "its pause is over")]
