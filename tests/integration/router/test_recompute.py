"""Real decisions of a real fleet, computed again from the log with its heartbeats gone (issue 4, criterion 7)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from schemas.errors import HeadraceError
from schemas.events import Options, TaskReleased, TaskRouted, TaskSubmitted, WorkerInput
from services.router.as_of import as_of
from services.router.differences import differences
from services.router.recompute import routed_again
from services.router.recompute_release import released_again
from services.router.service import RouterService
from services.router.verify import verify
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from support.eventually import eventually
from support.projecting import ProjectorProcess
from support.routers import dispatching, end_of, question, running_router, with_workers
from support.stub_server import Pace, StubServer
from support.worker_bench import running_worker

MODELS = ("small", "large")
Task = tuple[TaskSubmitted, TaskRouted, TaskReleased]


class Past(NamedTuple):
    """``tasks`` have ended, and what workers said of themselves meanwhile is gone."""

    bus: Bus
    router: RouterService
    tasks: list[str]


@pytest.fixture
async def past(natsd: EmbeddedServer, bus: Bus, tmp_path: Path) -> AsyncIterator[Past]:
    async with AsyncExitStack() as stack:
        projector = await stack.enter_async_context(ProjectorProcess(natsd.url, tmp_path / "data"))
        router = await stack.enter_async_context(running_router(natsd.url))
        await dispatching(router)
        for worker, token_s, slots in (("w-fast", 0.002, 2), ("w-slow", 0.008, 1)):
            stub = await stack.enter_async_context(StubServer(dict.fromkeys(MODELS, Pace(0.01, token_s))))
            await stack.enter_async_context(running_worker(natsd.url, stub.url, worker=worker, slots=slots))
        await with_workers(router, 2, model="small")
        await eventually(lambda: router.desk.cells.exact)
        tasks = []
        for n in range(4):
            asked = question(f"Count to {n}.", model=None if n % 2 else "small", options=Options(max_tokens=8))
            tasks.append((await router.submit(asked)).task)
            await end_of(router, tasks[-1])
        await eventually(lambda: router.desk.cells.exact and len(router.desk.stats) > 0)
        burst = [
            await router.submit(question(f"Hurry {n}.", model=None, options=Options(max_tokens=20))) for n in range(6)
        ]
        for submitted in burst:
            await end_of(router, submitted.task)
        await bus.api("STREAM.PURGE.HEARTBEATS")
        await projector.reached(bus, router.desk.state.position)
        yield Past(bus, router, tasks + [submitted.task for submitted in burst])


async def told(past: Past, task: str) -> Task:
    found = await past.router.explain(task)
    assert found is not None

    def only(kind: type[Any]) -> Any:
        return next(event for event in found[2] if isinstance(event, kind))

    return only(TaskSubmitted), only(TaskRouted), only(TaskReleased)


async def test_every_decision_is_the_same_to_the_last_bit_and_no_recorded_input_can_be_altered_unseen(
    past: Past,
) -> None:
    checked = 0
    for task in past.tasks:
        found = await past.router.explain(task)
        assert found is not None
        verdicts = await verify(past.bus, found[2])
        assert [v.decision for v in verdicts] == ["task.routed", "task.released"]
        assert [v.words for v in verdicts if v.same is False] == []
        checked += sum(v.same is True for v in verdicts)
    assert checked >= 2 * len(past.tasks) - 2
    for task in past.tasks[-3:]:
        await _alter(past, *await told(past, task))


async def _alter(past: Past, submitted: TaskSubmitted, routed: TaskRouted, released: TaskReleased) -> None:
    then = await as_of(past.bus, position=routed.position, folded=routed.folded)
    assert len(then.stats) > 0
    for name, altered in _altered_inputs(routed.inputs[0]).items():
        changed = msgspec.structs.replace(routed, inputs=(altered, *routed.inputs[1:]))
        found = differences(routed, routed_again(submitted, changed, then.workers, then.stats))
        assert [d for d in found if not d.field.startswith("inputs")], name
    without = list(then.stats.cells())[1:]
    fewer = type(then.stats)(without)
    fewer.position = then.stats.position
    assert differences(routed, routed_again(submitted, routed, then.workers, fewer))
    then = await as_of(past.bus, position=released.position, folded=released.folded)
    index = next(n for n, given in enumerate(released.inputs) if given.worker == released.expected_worker)
    for name, altered in _altered_release_inputs(released.inputs[index]).items():
        inputs = (*released.inputs[:index], altered, *released.inputs[index + 1 :])
        other = msgspec.structs.replace(released, inputs=inputs)
        found = differences(released, released_again(submitted, routed, other, then.workers, then.stats))
        assert [d for d in found if d.field != f"inputs[{index}].{name}"], name


def _altered_inputs(given: WorkerInput) -> dict[str, WorkerInput]:
    changes: dict[str, Any] = {
        "waiting_s": (given.waiting_s or 0.0) + 0.001,
        "others_use": _other_use(given.others_use),
        "resident": () if given.resident else ("large", "small"),
        "alive": not given.alive,
        "fresh": not given.fresh,
        "draining": not given.draining,
        "paused": not given.paused,
    }
    return {name: msgspec.structs.replace(given, **{name: value}) for name, value in changes.items()}


def _altered_release_inputs(given: WorkerInput) -> dict[str, WorkerInput]:
    changes: dict[str, Any] = {
        "remaining_s": (*(given.remaining_s or ()), 0.5),
        "others_use": _other_use(given.others_use),
        "resident": () if given.resident else ("large", "small"),
    }
    return {name: msgspec.structs.replace(given, **{name: value}) for name, value in changes.items()}


def _other_use(use: float | None) -> float:
    """One that leaves another share of the machine, which is never less than a quarter."""
    return 0.125 if use is None or use > 0.5 else 0.7


async def test_a_decision_is_set_beside_a_policy_a_slider_a_task_and_a_time(past: Past) -> None:
    asked, task = question("Count to 7.", model=None), past.tasks[-1]
    _, routed, _ = await told(past, task)
    for about in (asked, task):
        slider = await past.router.versus(about, "slider=2")
        assert (slider.before.policy.weights["slider"], slider.after.policy.weights["slider"]) == (1.0, 2.0)
        assert "The slider would go from 1 to 2 seconds a point of quality." in slider.words
        other = await past.router.versus(about, "least-inflight")
        assert other.after.policy.name == "policy" and other.after.policy.weights["least_in_flight"] == 1.0
        assert all(candidate.votes for candidate in other.after.candidates)
        earlier = await past.router.versus(about, past.tasks[0])
        assert earlier.before.task == past.tasks[0]
        ancient = await past.router.versus(about, datetime.fromtimestamp(routed.at, UTC).isoformat())
        assert ancient.before.position < past.router.desk.state.position
    assert (await past.router.versus(task, "slider=1")).words == (
        "The choice would be the same, " + _pair(past, routed) + ".",
    )
    assert (await past.router.versus(task, "least_completion")).words[0].startswith("The choice would be the same")
    for nonsense in ("leest_completion", "2026-13-01", "01m8mh0xdk0d95pdj4qp5gqhct"):
        with pytest.raises(HeadraceError, match="no policy, route, task or time"):
            await past.router.versus(asked, nonsense)
    with pytest.raises(HeadraceError, match="begins later"):
        await past.router.versus(asked, "52w")


def _pair(past: Past, routed: TaskRouted) -> str:
    assert routed.choice is not None and routed.choice.worker is not None
    return f"{routed.choice.model} on {past.router.fleet().names()[routed.choice.worker]}"
