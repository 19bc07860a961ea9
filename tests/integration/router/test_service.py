"""The router on a real nats-server with the real worker: from a submission to its end, over deaths, rivals and gaps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from schemas.events import AttemptFailed, DispatcherElected, TaskReleased
from services.router.dispatch.permits import Limit, Limits
from services.router.port import EndUpdate, RestartUpdate, StatusUpdate, TokenUpdate, TooLarge
from services.router.service import RouterService
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from simulation.check import check_log
from support.backends import Gate, Hang, Script, Stub, ollama_done, ollama_frame, ollama_stand_in
from support.eventually import PATIENCE_S, eventually
from support.routers import (
    MODEL,
    DyingBus,
    SkippingClock,
    dispatching,
    doomed_router,
    end_of,
    followed,
    mortal_worker,
    question,
    running_router,
    started,
    whole_log,
    with_workers,
)
from support.worker_bench import running_worker


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with ollama_stand_in() as server:
        yield server


@pytest.fixture
async def router(natsd: EmbeddedServer) -> AsyncIterator[RouterService]:
    async with running_router(natsd.url) as service:
        await dispatching(service)
        yield service


async def test_a_task_goes_from_its_submission_to_its_stored_answer(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus
) -> None:
    async with running_worker(natsd.url, stub.url):
        await with_workers(router, 1)
        task = (await router.submit(question())).task
        updates = await followed(router, task)
        states = [u.status.state for u in updates if isinstance(u, StatusUpdate)]
        assert states[0] == "waiting" and states[-1] == "running"
        end = updates[-1]
        assert isinstance(end, EndUpdate) and end.answer is not None
        assert end.status.state == "completed" and end.status.worker == "w-bench"
        text = "".join(u.text for u in updates if isinstance(u, TokenUpdate))
        assert text == end.answer.text == "word0 word1 word2 word3 "
        assert await router.answer(task) == end.answer
        explained = await router.explain(task)
        assert explained is not None
        assert [type(event).__name__ for event in explained[2]] == [
            "TaskSubmitted", "TaskRouted", "TaskReleased", "TaskStarted", "TaskCompleted",
        ]  # fmt: skip
        released = next(event for event in await whole_log(bus) if isinstance(event, TaskReleased))
        assert released.inputs and released.predicted.total_s is not None and released.cost_s is not None


async def test_a_text_above_what_the_server_takes_is_refused_for_good(router: RouterService, bus: Bus) -> None:
    most = bus.nc.max_payload
    with pytest.raises(TooLarge, match=f"max_payload.*{most}"):
        await router.submit(question("x" * most))
    assert router.queue() == ()
    assert await bus.last_seq("TASKS") == 0


async def test_a_label_that_is_nearly_a_known_one_is_told_at_once_and_in_a_preview(
    natsd: EmbeddedServer, router: RouterService, stub: Stub
) -> None:
    async with running_worker(natsd.url, stub.url):
        await with_workers(router, 1)
        for submitted in (router.preview(question(domain="maht")), await router.submit(question(domain="maht"))):
            assert submitted.domain.label == "maht" and "'maths' is one" in (submitted.warning or "")
        assert (await router.submit(question(domain="maths"))).warning is None


async def test_one_who_follows_after_the_end_gets_the_whole_answer(
    natsd: EmbeddedServer, router: RouterService, stub: Stub
) -> None:
    async with running_worker(natsd.url, stub.url), running_router(natsd.url, "r2") as other:
        await with_workers(router, 1)
        task = (await router.submit(question())).task
        await end_of(router, task)
        await eventually(lambda: (found := other.desk.state.task(task)) is not None and found.terminal is not None)
        for service in (router, other):
            updates = await followed(service, task)
            assert "".join(u.text for u in updates if isinstance(u, TokenUpdate)) == "word0 word1 word2 word3 "


async def test_what_came_while_no_machine_was_there_starts_when_one_comes(
    natsd: EmbeddedServer, router: RouterService, stub: Stub
) -> None:
    task = (await router.submit(question(model=None))).task
    reason = "no_model: no machine has reported a model"
    await eventually(lambda: [waiting.reason for waiting in router.queue()] == [reason])
    async with running_worker(natsd.url, stub.url):
        assert (await end_of(router, task)).status.state == "completed"


async def test_a_reader_that_goes_away_for_good_takes_its_task_with_it(
    natsd: EmbeddedServer, stub: Stub, bus: Bus
) -> None:
    stub.scripts.append(Script([ollama_frame("a"), Hang()]))
    async with running_router(natsd.url, grace_s=0.3) as router, running_worker(natsd.url, stub.url):
        await with_workers(router, 1)
        task = (await router.submit(question())).task
        async with router.follow(task) as updates:
            async for update in updates:
                if isinstance(update, TokenUpdate):
                    break
        await asyncio.wait_for(stub.client_gone.wait(), PATIENCE_S)
        assert (await end_of(router, task)).status.state == "cancelled"


async def test_a_cancel_before_anybody_was_free_ends_the_task_at_once(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus
) -> None:
    gate = Gate()
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_done()]))
    async with running_worker(natsd.url, stub.url):
        await with_workers(router, 1)
        first = (await router.submit(question())).task
        second = (await router.submit(question())).task
        await started(router, first)
        assert await router.cancel(second, "changed my mind")
        assert (await end_of(router, second)).status.detail == "changed my mind"
        assert not await router.cancel(second, "again")
        gate.opened.set()
        assert (await end_of(router, first)).status.state == "completed"
    assert not router.desk.live.cancels


async def test_permits_hold_over_a_flood(natsd: EmbeddedServer, stub: Stub, bus: Bus) -> None:
    limits = Limits(model=Limit(2), client=Limit(3))
    async with (
        running_router(natsd.url, limits=limits) as router,
        running_worker(natsd.url, stub.url, slots=4),
    ):
        await with_workers(router, 1)
        tasks = [(await router.submit(question())).task for _ in range(12)]
        for task in tasks:
            assert (await end_of(router, task)).status.state == "completed"
        violations, kinds = check_log(await whole_log(bus), limits)
        assert (violations, kinds["task.completed"]) == ([], 12)
        assert router.desk.state.held == {}


async def test_a_task_can_be_cancelled_at_a_router_that_does_not_decide(
    natsd: EmbeddedServer, router: RouterService, stub: Stub
) -> None:
    stub.scripts.append(Script([ollama_frame("a"), Hang()]))
    async with running_router(natsd.url, "standby") as standby, running_worker(natsd.url, stub.url):
        await with_workers(standby, 1)
        task = (await standby.submit(question())).task
        await eventually(lambda: bool(stub.chats()))
        assert not standby.readiness().dispatcher
        assert await standby.cancel(task, "no longer needed")
        assert (await end_of(standby, task)).status.detail == "no longer needed"
        await asyncio.wait_for(stub.client_gone.wait(), PATIENCE_S)
        await eventually(lambda: not standby.desk.live.cancels and not router.desk.live.cancels)


async def test_a_worker_that_leaves_in_the_middle_of_a_flood_costs_no_attempt(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus
) -> None:
    gate = Gate()
    stub.scripts += [Script([ollama_frame("a"), gate, ollama_done()])] * 3
    async with running_worker(natsd.url, stub.url, worker="w-stays"):
        async with running_worker(natsd.url, stub.url, worker="w-leaves", slots=2):
            await with_workers(router, 2)
            tasks = [(await router.submit(question())).task for _ in range(12)]
            await eventually(lambda: len(stub.chats()) == 3)
            gate.opened.set()
        for task in tasks:
            assert (await end_of(router, task)).status.state == "completed"
        assert set(router.fleet().workers) == {"w-stays"}
    violations, kinds = check_log(await whole_log(bus), Limits())
    assert (violations, kinds["task.completed"], kinds["worker.left"]) == ([], 12, 2)


async def test_a_model_that_its_machine_lost_waits_for_it_and_runs_when_it_is_back(
    natsd: EmbeddedServer, router: RouterService, stub: Stub
) -> None:
    def held() -> bool:
        return any(MODEL in view.models for view in router.fleet().workers.values())

    gate, tags = Gate(), dict(stub.pages["/api/tags"])
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_done()]))
    async with running_worker(natsd.url, stub.url):
        await with_workers(router, 1)
        first, second = [(await router.submit(question())).task for _ in range(2)]
        await started(router, first)
        stub.pages["/api/tags"] = {"models": []}
        await eventually(lambda: not held())
        gate.opened.set()
        assert (await end_of(router, first)).status.state == "completed"
        await eventually(lambda: any("no_worker" in str(waiting.reason) for waiting in router.queue()))
        stub.pages["/api/tags"] = tags
        assert (await end_of(router, second)).status.state == "completed"


async def test_when_the_dispatcher_dies_another_router_decides_under_a_later_epoch(
    natsd: EmbeddedServer, stub: Stub, bus: Bus
) -> None:
    async with AsyncExitStack() as first_life, running_worker(natsd.url, stub.url):
        first, _ = await first_life.enter_async_context(doomed_router(natsd.url, 10_000, stores_last=True))
        await dispatching(first)
        async with running_router(natsd.url, "standby") as standby:
            await with_workers(standby, 1)
            await first_life.aclose()
            task = (await standby.submit(question())).task
            await dispatching(standby)
            assert (await end_of(standby, task)).status.state == "completed"
    elected = [event for event in await whole_log(bus) if isinstance(event, DispatcherElected)]
    assert [event.router for event in elected] == ["r1", "standby"]
    assert elected[0].epoch < elected[1].epoch


async def test_a_router_that_slept_loses_no_healthy_attempt(natsd: EmbeddedServer, stub: Stub, bus: Bus) -> None:
    gate, clock = Gate(), SkippingClock()
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_frame("b"), ollama_done()]))
    async with running_router(natsd.url, clock=clock) as router, running_worker(natsd.url, stub.url):
        await with_workers(router, 1)
        task = (await router.submit(question())).task
        await started(router, task)
        heard = router.desk.now
        clock.skipped += 100.0
        await eventually(lambda: router.desk.now > heard)
        gate.opened.set()
        assert (await end_of(router, task)).status.attempt == 1
    assert not [event for event in await whole_log(bus) if isinstance(event, AttemptFailed)]


async def test_a_machine_that_nobody_mentions_any_more_loses_its_task_to_another(
    natsd: EmbeddedServer, stub: Stub, bus: Bus
) -> None:
    clock = SkippingClock()
    stub.scripts.append(Script([ollama_frame("a"), Hang()]))
    async with running_router(natsd.url, clock=clock) as router:
        router.desk.clock.interval_s = 1_000.0  # this router believes its own clock
        async with mortal_worker(natsd.url, stub.url, "w-bench") as kill:
            await with_workers(router, 1)
            task = (await router.submit(question())).task
            await started(router, task)
            await kill()
            clock.skipped += 31.0
            await eventually(lambda: router.desk.state.tasks[task].attempts[1].failure == "lost")
        async with running_worker(natsd.url, stub.url, worker="w-other"):
            end = await end_of(router, task)
            assert (end.status.state, end.status.worker, end.status.attempt) == ("completed", "w-other", 2)
    lost = next(event for event in await whole_log(bus) if isinstance(event, AttemptFailed))
    assert (lost.model, lost.domain, lost.worker, lost.digest) == (MODEL, "general", "w-bench", "d1" * 32)
    assert lost.elapsed_s is not None and lost.elapsed_s > 30


async def test_a_worker_that_restarted_runs_its_lost_task_again_at_once_and_readers_start_over(
    natsd: EmbeddedServer, router: RouterService, stub: Stub
) -> None:
    stub.scripts.append(Script([ollama_frame("half an ans"), Hang()]))
    async with mortal_worker(natsd.url, stub.url, "w-bench") as kill:
        await with_workers(router, 1)
        task = (await router.submit(question())).task
        reading = asyncio.create_task(followed(router, task))
        await eventually(lambda: bool((channel := router.channels.get(task)) and channel.tokens))
        await kill()
    async with running_worker(natsd.url, stub.url):
        updates = await reading
    at = next(n for n, update in enumerate(updates) if isinstance(update, RestartUpdate))
    before = "".join(u.text for u in updates[:at] if isinstance(u, TokenUpdate))
    after = "".join(u.text for u in updates[at:] if isinstance(u, TokenUpdate))
    assert (before, after) == ("half an ans", "word0 word1 word2 word3 ")


async def test_a_router_killed_with_twenty_waiting_tasks_forgets_none(
    natsd: EmbeddedServer, stub: Stub, bus: Bus
) -> None:
    gate = Gate()
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_done()]))
    async with running_worker(natsd.url, stub.url):
        async with doomed_router(natsd.url, publishes=10_000, stores_last=True) as (first, _):
            await with_workers(first, 1)
            tasks = [(await first.submit(question())).task for _ in range(21)]
            await eventually(lambda: bool(stub.chats()))
        gate.opened.set()
        async with running_router(natsd.url) as second:
            for task in tasks:
                assert (await end_of(second, task)).status.state == "completed"
    violations, kinds = check_log(await whole_log(bus), Limits())
    assert (violations, kinds["task.completed"]) == ([], 21)


async def test_a_router_killed_between_every_two_of_its_publishes_completes_each_task_exactly_once(
    natsd: EmbeddedServer, stub: Stub, bus: Bus
) -> None:
    """Each life may store one fact or item more than that it was elected; every second one dies with it on its lips."""
    async with running_router(natsd.url) as first:
        tasks = [(await first.submit(question(model=None))).task for _ in range(20)]
    lives = 0
    async with running_worker(natsd.url, stub.url, slots=2, heartbeat_s=0.1):
        is_done = False
        while not is_done:
            lives += 1
            assert lives < 300
            async with doomed_router(natsd.url, publishes=2, stores_last=lives % 2 == 0) as (router, dying):
                is_done = await _done_before_death(router, dying, tasks)
    violations, kinds = check_log(await whole_log(bus), Limits())
    assert (violations, kinds["task.completed"]) == ([], 20)
    assert lives > 3 * 20


async def _done_before_death(router: RouterService, dying: DyingBus, tasks: list[str]) -> bool:
    def done() -> bool:
        found = [router.desk.state.task(task) for task in tasks]
        return dying.dead.is_set() or all(task is not None and task.terminal is not None for task in found)

    await eventually(done)
    return not dying.dead.is_set()
