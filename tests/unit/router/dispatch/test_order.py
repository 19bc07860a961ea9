"""Who is next: arrival, class offset and k times the expected service, by hand."""

from __future__ import annotations

import pytest

from schemas import events
from services.router.dispatch.live import Wait
from services.router.dispatch.order import OVERTAKEN_MOST_S, behind, in_order, queue, service_of
from support.builders import build
from support.planning import Planning


def names(desk: Planning, k: float) -> list[str]:
    return [task.submitted.task for task in queue(desk.state, desk.live, k)]


@pytest.fixture
def desk() -> Planning:
    """A long task, 5 s later a short one, 5 s later a middling one."""
    desk = Planning()
    for task, service_s in (("long", 30.0), ("short", 1.0), ("middle", 10.0)):
        desk.arrives(task, service_s=service_s)
        desk.wait(5.0)
    return desk


@pytest.mark.parametrize(
    ("k", "order"),
    [
        (0.0, ["long", "short", "middle"]),  # 0, 5, 10
        (0.1, ["long", "short", "middle"]),  # 3, 5.1, 11
        (1.0, ["short", "middle", "long"]),  # 6, 20, 30
        (3.3, ["short", "middle", "long"]),  # 8.3, 43, 99
    ],
)
def test_k_seconds_of_queueing_are_worth_one_of_service(desk: Planning, k: float, order: list[str]) -> None:
    assert names(desk, k) == order


def test_k_decides_between_a_short_late_task_and_a_long_early_one() -> None:
    """20 s of service more, 25 s earlier: worth it at 1, not at 3.3."""
    desk = Planning()
    desk.arrives("early", service_s=21.0)
    desk.wait(25.0)
    desk.arrives("late", service_s=1.0)
    assert names(desk, 1.0) == ["early", "late"]
    assert names(desk, 3.3) == ["late", "early"]


@pytest.mark.parametrize(("urgency", "offset_s"), [("interactive", 0.0), ("batch", 120.0), ("background", 600.0)])
def test_a_class_is_worth_a_bounded_time(urgency: str, offset_s: float) -> None:
    desk = Planning()
    desk.arrives("first", urgency=urgency)
    if offset_s:
        desk.wait(offset_s - 0.5)
        desk.arrives("before it")
    desk.wait(1.0)
    desk.arrives("behind it")
    assert names(desk, 1.0) == [*(["before it"] if offset_s else []), "first", "behind it"]


def test_equals_go_in_the_order_of_the_log_whatever_the_order_in_memory() -> None:
    desk = Planning()
    for name in ("c", "a", "b"):
        desk.arrives(name, service_s=2.0)
    assert names(desk, 1.0) == ["c", "a", "b"]
    desk.state.tasks = dict(reversed(desk.state.tasks.items()))
    assert names(desk, 1.0) == ["c", "a", "b"]


def test_who_was_passed_by_a_minutes_work_keeps_to_its_arrival_and_class(desk: Planning) -> None:
    desk.live.waits["long"] = Wait(overtaken_s=OVERTAKEN_MOST_S - 0.1)
    assert names(desk, 1.0)[0] == "short"
    desk.live.waits["long"].overtaken_s = OVERTAKEN_MOST_S
    assert names(desk, 1.0)[0] == "long"


def test_who_was_passed_often_enough_in_this_very_pass_too(desk: Planning) -> None:
    waiting = list(desk.state.tasks.values())
    assert [t.submitted.task for t in in_order(waiting, desk.live, 1.0, {"long"})] == ["long", "short", "middle"]


def test_a_decision_on_its_way_to_the_log_counts_as_one_in_it() -> None:
    desk = Planning()
    desk.submit("t1")
    assert service_of(desk.task("t1"), desk.live) == 0.0
    desk.live.drafts["t1"] = build(events.TaskRouted, task="t1", service_s=7.0)
    assert service_of(desk.task("t1"), desk.live) == 7.0
    desk.wait(5.0)
    desk.arrives("t2")
    assert names(desk, 1.0) == ["t2", "t1"]


def test_only_what_waits_is_in_the_queue() -> None:
    desk = Planning()
    desk.joins("w1")
    desk.busy("w1", "runs")
    desk.arrives("waits")
    desk.arrives("ended")
    desk.tell(build(events.TaskCancelled, task="ended"))
    assert names(desk, 1.0) == ["waits"]


def test_behind_a_task_are_those_of_its_class_and_of_more_urgent_ones() -> None:
    desk = Planning()
    classes = ("interactive", "background", "batch", "interactive", "batch", "background", "interactive")
    for n, urgency in enumerate(classes):
        desk.arrives(f"t{n}", urgency=urgency)
    assert behind([desk.task(f"t{n}") for n in range(len(classes))]) == [2, 5, 3, 1, 1, 1, 0]
