"""The group or a lane: a task goes to the machine that the plan wants, or to one that is as good."""

from __future__ import annotations

import pytest

from schemas import events
from schemas.events import WorkerLoad
from schemas.subjects import group_durable
from services.router.dispatch.actions import Publish
from services.router.dispatch.permits import Limit, Limits
from support.builders import build
from support.dispatching import Dispatch, of
from support.planning import Planning, taking


def lanes(desk: Dispatch) -> list[tuple[str, str | None]]:
    """(lane, expected worker) of each release."""
    found = [action.event for action in of(Publish, desk.settle())]
    return [(e.lane, e.expected_worker) for e in found if isinstance(e, events.TaskReleased)]


def test_equal_machines_of_several_slots_get_equally_many() -> None:
    """The server serves all pulls of the first of them before one of the next; the last task finds only one with a credit."""
    desk = Dispatch()
    for worker in ("w1", "w2"):
        desk.join(worker, free=3)
    for n in range(6):
        desk.submit(f"t{n}", model="m")
    found = lanes(desk)
    assert sorted(expected or "" for _, expected in found) == ["w1"] * 3 + ["w2"] * 3
    assert [lane for lane, _ in found[:5]] == [expected for _, expected in found[:5]]


def test_equal_machines_of_one_slot_share_a_group() -> None:
    desk = Dispatch()
    for worker in ("w1", "w2"):
        desk.join(worker)
    desk.submit("t1", model="m")
    desk.submit("t2", model="m")
    found = lanes(desk)
    assert [lane for lane, _ in found] == ["any", "any"]
    assert sorted(expected or "" for _, expected in found) == ["w1", "w2"]


@pytest.mark.parametrize("use", [0.5, None])
def test_a_machine_that_somebody_else_uses_is_no_equal_of_a_free_one(use: float | None) -> None:
    """Its pull has the priority of its speed alone."""
    desk = Dispatch()
    for worker, others_use in (("w1", use), ("w2", 0.0)):
        desk.join(worker)
        load = build(
            WorkerLoad, by=worker, worker=worker, boot="b1", others_use=others_use, resident=("m",), credit=None
        )
        desk.live.hear_load(load, desk.now)
    desk.submit("t1", model="m")
    assert lanes(desk) == [("w2", "w2")]


def two(fast: int = 0, slow: int = 3) -> Planning:
    """Two machines of one slot that hold m, with these pull priorities; the first one needs 10 s, the second 20 s."""
    desk = Planning(speeds={("m", "slow"): taking(20.0)})
    desk.joins("fast", priority=fast)
    desk.joins("slow", priority=slow)
    desk.arrives("t1", model="m")
    return desk


def test_the_group_serves_only_where_the_planned_machines_pull_is_first_in_line() -> None:
    assert two().release("t1").lane == "any"
    assert two(fast=5, slow=0).release("t1").lane == "fast"


def test_a_pull_that_was_armed_before_its_rival_had_loaded_the_model_does_not_count_as_equal() -> None:
    """Both stand with the priority of machines that must load first; one of them has loaded since (case 9)."""
    desk = Planning(speeds={("m", "cold"): taking(5.0), ("m", "warm"): taking(6.0)})
    desk.joins("cold", resident=())
    desk.joins("warm")
    desk.arrives("t1", model="m")
    release = desk.release("t1")
    assert (release.lane, release.expected) == ("warm", "warm")


@pytest.mark.parametrize(("most", "lane"), [(None, "any"), (10, "warm")])
def test_pulls_that_are_equal_for_a_usual_answer_are_not_for_one_that_is_shorter_than_a_load(
    most: int | None, lane: str
) -> None:
    """12 s warm, 12 s with the load; of ten tokens 3 s warm, 6.6 s with the load."""
    desk = Planning(speeds={("m", "cold"): taking(6.0)})
    desk.joins("cold", resident=())
    desk.joins("warm")
    desk.arrives("t1", model="m", options=events.Options(max_tokens=most))
    release = desk.release("t1")
    assert lane == release.lane
    if most is not None:
        assert release.expected == "warm"


def test_a_pull_of_a_busy_machine_is_not_in_line() -> None:
    desk = two()
    desk.busy("fast", "t0", left_s=100.0)
    release = desk.release("t1")
    assert (release.lane, release.expected) == ("any", "slow")


def test_two_releases_of_one_pass_follow_the_priorities_and_both_take_the_group() -> None:
    desk = two()
    desk.arrives("t2", model="m")
    desk.busy("fast", "t0", left_s=1.0)
    desk.complete("t0")
    desk.credit("fast")
    first, second = desk.plan().releases
    assert [(first.lane, first.expected), (second.lane, second.expected)] == [("any", "fast"), ("any", "slow")]


def test_a_machine_that_was_taken_out_is_no_holder_and_shuts_the_group_while_its_pull_may_stand() -> None:
    desk = two()
    desk.tell(build(events.WorkerPaused, worker="slow"))
    release = desk.release("t1")
    assert (release.lane, release.holders, release.permits) == (
        "fast",
        ("fast",),
        ("model:m", "client:me", "backend:fast"),
    )


def test_where_no_lane_is_armed_and_the_group_is_shut_the_task_waits_and_says_so() -> None:
    desk = two()
    desk.arrives("t2", wants=events.Wants(model="m", worker="slow"))
    desk.credit("slow", armed={group_durable("cpu_inference", "m"): 3})
    planned = desk.plan()
    assert [release.task for release in planned.releases] == ["t1"]
    assert planned.holds["t2"].startswith("busy: the lane of ") and planned.holds["t2"].endswith(" is not armed")


def test_a_lane_takes_the_backend_of_its_machine_alone_and_a_foreign_backend_takes_none() -> None:
    desk = Planning()
    desk.joins("cloud", local=False)
    desk.joins("own")
    for worker in ("cloud", "own"):
        desk.arrives(worker, wants=events.Wants(model="m", worker=worker))
    assert desk.release("cloud").permits == ("model:m", "client:me")
    assert desk.release("own").permits == ("model:m", "client:me", "backend:own")


def test_a_full_backend_sends_the_task_to_another_machine_and_never_above_the_limit() -> None:
    desk = two()
    desk.limits = Limits(backend=Limit(names={"fast": 1}))
    desk.credit("fast", free=3)
    for n in range(2, 5):
        desk.arrives(f"t{n}", model="m")
    assert desk.went() == [("t1", "fast"), ("t2", "slow")]
    assert {desk.code("t3"), desk.code("t4")} <= {"backend_full", "busy"}
