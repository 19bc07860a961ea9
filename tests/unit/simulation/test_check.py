"""The judge of histories, judged: each promise broken in as few facts as it takes."""

from __future__ import annotations

from typing import Any

from schemas import events
from schemas.events import AnyEvent
from services.router.dispatch.permits import UNLIMITED, Limit, Limits
from simulation.check import check_log
from support.builders import build

ELECTED = build(events.DispatcherElected, epoch=1)


def released(task: str = "t", attempt: int = 1, epoch: int = 1, worker: str = "w") -> AnyEvent:
    permits = ("model:m", f"backend:{worker}")
    return build(events.TaskReleased, task=task, attempt=attempt, epoch=epoch, permits=permits, model="m")


def started(task: str = "t", attempt: int = 1, worker: str = "w") -> AnyEvent:
    return build(events.TaskStarted, task=task, attempt=attempt, worker=worker)


def ended(task: str = "t", attempt: int = 1) -> AnyEvent:
    return build(events.TaskCompleted, task=task, attempt=attempt)


def failed(failure: str, task: str = "t", attempt: int = 1, **fields: Any) -> AnyEvent:
    return build(events.AttemptFailed, task=task, attempt=attempt, failure=failure, **fields)


def wrong(*told: AnyEvent, limits: Limits = UNLIMITED) -> list[str]:
    return check_log([ELECTED, *told], limits)[0]


def test_a_plain_history_is_right_and_counted() -> None:
    violations, kinds = check_log([ELECTED, released(), started(), ended()], UNLIMITED)
    assert violations == []
    assert kinds["task.completed"] == 1


def test_two_ends_are_seen() -> None:
    assert wrong(released(), started(), ended(), build(events.TaskCancelled, task="t")) == ["t has 2 terminal facts"]


def test_two_starts_and_a_start_after_its_revocation_are_seen() -> None:
    assert wrong(released(), started(), started(), ended()) == ["('t', 1) has 2 starts"]
    late = wrong(released(), failed("not_started"), started())
    assert late == ["('t', 1) started after it was revoked"]


def test_a_start_without_a_release_that_counts_is_seen() -> None:
    assert wrong(started(), ended())[0] == "('t', 1) started without a release that counts"
    later = build(events.DispatcherElected, epoch=2)
    assert "without a release" in wrong(later, released(), started(), ended())[0]


def test_a_permit_that_was_not_taken_is_seen() -> None:
    """It would never be above its limit, however many ran."""
    submitted = build(events.TaskSubmitted, task="t", client="me")
    assert wrong(submitted, released(), started(), ended()) == ["('t', 1) was released without its permit client:me"]
    bare = build(events.TaskReleased, task="t", attempt=1, epoch=1, permits=("backend:w",), model="m")
    assert wrong(bare, started(), ended()) == ["('t', 1) was released without its permit model:m"]


def test_a_start_outside_the_permits_is_seen() -> None:
    assert "outside" in wrong(released(worker="w"), started(worker="x"), ended())[0]


def test_permits_above_their_limit_at_any_moment_are_seen() -> None:
    limits = Limits(model=Limit(1))
    one_by_one = [released("a"), started("a"), ended("a"), released("b"), started("b"), ended("b")]
    assert wrong(*one_by_one, limits=limits) == []
    together = [released("a"), released("b"), started("a"), ended("a"), started("b"), ended("b")]
    assert "model:m is held 2 times" in wrong(*together, limits=limits)[0]


def test_a_total_over_all_names_counts_every_name() -> None:
    limits = Limits(model=Limit(total=1))
    told = [build(events.TaskReleased, task=t, attempt=1, epoch=1, permits=(f"model:{t}",)) for t in ("a", "b")]
    wanted = "2 permits of kind model are held, the limit in total is 1"
    assert wanted in wrong(*told, limits=limits)
    assert wanted not in wrong(*told, limits=Limits(model=Limit(total=2)))


def test_an_attempt_that_never_ended_is_seen() -> None:
    assert "never ended" in wrong(released(), started())[0]
    lost_by_a_former_epoch = [released(), started(), build(events.DispatcherElected, epoch=2), failed("lost", epoch=1)]
    assert "never ended" in wrong(*lost_by_a_former_epoch)[0]
