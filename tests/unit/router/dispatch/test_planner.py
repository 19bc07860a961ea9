"""Who gets what: group or lane, permits all or nothing, and no task kept for a machine that is gone."""

from __future__ import annotations

import pytest

from schemas import events
from services.router.dispatch.actions import Action, Publish
from services.router.dispatch.live import GONE_S
from services.router.dispatch.permits import UNLIMITED, Limit, Limits
from services.router.dispatch.planner import available, plan
from support.builders import build
from support.dispatching import Dispatch, of


def released(desk: Dispatch) -> list[tuple[str, str, str | None]]:
    """(task, lane, expected worker) of each release of a pass."""
    found = [action.event for action in of(Publish, desk.settle())]
    return [(e.task, e.lane, e.expected_worker) for e in found if isinstance(e, events.TaskReleased)]


def hold(desk: Dispatch, task: str) -> str:
    return plan(desk.state, desk.live, desk.now, desk.limits).holds[task].partition(":")[0]


def reasons(desk: Dispatch) -> dict[str, str | None]:
    """Why each release is for another pair than the first idea, by task."""
    found = [event for event in desk.stored.values() if isinstance(event, events.TaskReleased)]
    return {event.task: event.reason for event in found}


def permits(desk: Dispatch, task: str) -> set[str]:
    return set(desk.task(task).attempts[1].permits)


def fleet(limits: Limits = UNLIMITED, **priorities: int) -> Dispatch:
    """Workers of one slot that all hold m, each with its pull priority."""
    desk = Dispatch(limits)
    for worker, priority in priorities.items():
        desk.join(worker, priority=priority)
    return desk


def test_the_group_serves_when_every_holder_may_and_each_ones_backend_is_reserved() -> None:
    desk = fleet(w1=0, w2=3)
    desk.submit("t1")
    assert released(desk) == [("t1", "any", "w1")]
    assert permits(desk, "t1") == {"model:m", "client:me", "backend:w1", "backend:w2"}
    desk.start("t1", "w2")
    assert desk.state.held == {"model:m": 1, "client:me": 1, "backend:w2": 1}


def test_a_task_that_one_holder_may_not_serve_goes_to_a_lane() -> None:
    desk = fleet(w1=0)
    small = events.ModelInfo(name="m", backend_name="m", context=100)
    desk.join("w2", models=(small,))
    desk.credit("w1")
    desk.submit("t1", wants=events.Wants(model="m", context=1_000))
    assert released(desk) == [("t1", "w1", "w1")]


def test_a_task_for_one_worker_goes_to_its_lane() -> None:
    desk = fleet(w1=0, w2=3)
    desk.submit("t1", wants=events.Wants(model="m", worker="w2"))
    assert released(desk) == [("t1", "w2", "w2")]


def test_a_holder_that_was_not_heard_keeps_the_group_shut_only_as_long_as_its_pull_may_stand() -> None:
    desk = Dispatch()
    desk.report("w2")
    desk.join("w1")
    desk.submit("t1")
    assert released(desk) == [("t1", "w1", "w1")]
    desk.start("t1", "w1")
    desk.complete("t1")
    desk.wait(6.5)
    desk.credit("w1")
    desk.submit("t2")
    assert released(desk) == [("t2", "any", "w1")]


def test_releases_follow_the_pull_priorities_and_end_with_the_credits() -> None:
    desk = fleet(slow=5, fast=0)
    for n in range(3):
        desk.submit(f"t{n}")
    assert released(desk) == [("t0", "any", "fast"), ("t1", "any", "slow")]
    assert hold(desk, "t2") == "busy"


def test_a_full_backend_does_not_keep_its_task_from_another_machine() -> None:
    desk = fleet(Limits(backend=Limit(names={"w1": 1})), w2=5)
    desk.join("w1", free=2)
    desk.credit("w2", priority=5)
    desk.submit("t1")
    desk.submit("t2")
    assert released(desk) == [("t1", "w1", "w1"), ("t2", "w2", "w2")]


@pytest.mark.parametrize(("kind", "limit"), [("model", Limits(model=Limit(1))), ("client", Limits(client=Limit(1)))])
def test_a_full_permit_holds_the_rest_back_and_says_which(kind: str, limit: Limits) -> None:
    desk = fleet(limit, w1=0, w2=0)
    desk.submit("t1")
    desk.submit("t2")
    assert [task for task, _, _ in released(desk)] == ["t1"]
    assert hold(desk, "t2") == f"{kind}_full"


def test_a_total_counts_all_names_and_all_permits_of_one_release() -> None:
    desk = fleet(Limits(backend=Limit(total=1)), w1=0, w2=0)
    desk.submit("t1")
    desk.submit("t2")
    assert len(released(desk)) == 1
    assert sum(n for permit, n in desk.state.held.items() if permit.startswith("backend:")) == 1


def test_a_backend_that_somebody_else_limits_takes_no_permit_of_its_own() -> None:
    desk = Dispatch(Limits(model=Limit(2), backend=Limit(1)))
    desk.join("cloud", local=False, free=3)
    for n in range(3):
        desk.submit(f"t{n}")
    assert len(released(desk)) == 2
    assert permits(desk, "t0") == {"model:m", "client:me"}
    assert hold(desk, "t2") == "model_full"


def test_two_workers_over_one_backend_share_its_permit() -> None:
    desk = Dispatch(Limits(backend=Limit(1)))
    desk.join("w1", backend_id="be")
    desk.join("w2", backend_id="be")
    desk.credit("w1")
    desk.submit("t1")
    desk.submit("t2")
    assert len(released(desk)) == 1


def test_an_open_task_takes_another_model_when_the_chosen_ones_holders_left() -> None:
    desk = fleet()
    desk.join("w1", "m")
    desk.credit("w1", free=0)
    desk.submit("t1")
    assert released(desk) == []
    desk.tell(build(events.WorkerLeft, worker="w1", boot="b1"))
    desk.join("w2", "n")
    assert released(desk) == [("t1", "any", "w2")]
    attempt = desk.task("t1").attempts[1]
    assert (attempt.model, desk.task("t1").submitted.wants.model) == ("n", None)
    assert reasons(desk) == {"t1": "nobody who holds m is there now"}


def test_who_fixed_the_model_waits_for_it_and_who_left_it_open_does_not() -> None:
    desk = fleet(w1=0)
    desk.credit("w1", free=0)
    desk.join("w2", "n")
    desk.submit("t1")
    desk.submit("fixed", model="m")
    assert released(desk) == [("t1", "any", "w2")]
    assert desk.task("t1").attempts[1].model == "n"
    desk.wait(GONE_S + 1.0)
    assert hold(desk, "fixed") == "no_worker"


def test_a_suspect_gets_nothing_until_its_next_credit() -> None:
    desk = fleet(w1=0)
    desk.live.workers["w1"].suspect = True
    desk.submit("t1")
    assert released(desk) == []
    desk.credit("w1")
    assert released(desk) == [("t1", "any", "w1")]


def test_a_credit_that_overtook_the_facts_is_not_spent_twice() -> None:
    desk = fleet(w1=0)
    desk.submit("t1")
    desk.settle()
    desk.credit("w1", free=1)  # it has not seen the item yet
    assert available(desk.state, desk.live, desk.now) == {"w1": 0}
    desk.credit("w1", ("t1", 1), free=1)
    assert available(desk.state, desk.live, desk.now) == {"w1": 1}


def test_urgency_moves_a_task_by_a_bounded_time() -> None:
    desk = fleet(w1=0)
    desk.credit("w1", free=0)
    desk.submit("late", urgency="background")
    desk.wait(599.0)
    desk.submit("interactive")
    desk.wait(2.0)
    desk.submit("too late")
    desk.settle()
    desk.credit("w1", free=3)
    assert [task for task, _, _ in released(desk)] == ["interactive", "late", "too late"]


def test_after_a_refusal_the_task_goes_to_a_lane_where_only_who_may_can_take_it() -> None:
    desk = fleet(w1=0)
    desk.submit("t1")
    assert released(desk) == [("t1", "any", "w1")]
    desk.fail("t1", "refused")  # somebody pulled from the group whose report the log does not have
    desk.credit("w1")
    assert (released(desk), hold(desk, "t1")) == ([], "backoff")
    desk.wait(1.1)
    desk.credit("w1")
    assert released(desk) == [("t1", "w1", "w1")]


def test_with_limits_on_backends_a_burst_over_idle_machines_leaves_at_once() -> None:
    desk = fleet(Limits(backend=Limit(1)), w1=0, w2=0, w3=0)
    for n in range(3):
        desk.submit(f"t{n}")
    first = [action.event for action in of(Publish, desk.decide()) if isinstance(action.event, events.TaskReleased)]
    assert sorted((event.lane, event.expected_worker) for event in first) == [("w1", "w1"), ("w2", "w2"), ("w3", "w3")]


def releases(actions: list[Action]) -> list[tuple[str, str | None]]:
    """(task, expected worker) of the releases among the actions, done or not."""
    found = [action.event for action in of(Publish, actions)]
    return [(event.task, event.expected_worker) for event in found if isinstance(event, events.TaskReleased)]


def test_what_a_release_on_its_way_takes_is_taken_and_the_next_need_not_wait_for_it() -> None:
    desk = fleet(Limits(client=Limit(2)), w1=0, w2=0)
    desk.submit("t1")
    first = desk.decide()
    for task in ("t2", "t3"):
        desk.submit(task)
    second = desk.decide()
    assert [task for task, _ in releases(first + second)] == ["t1", "t2"], (
        "the client's limit counts what is on its way"
    )
    assert {worker for _, worker in releases(first + second)} == {"w1", "w2"}, "and so does each machine's credit"
    for action in first + second:
        desk.do(action)
    desk.settle()
    assert desk.state.held["client:me"] == 2 and not desk.live.promises()


def test_a_release_that_was_not_stored_takes_nothing() -> None:
    desk = fleet(w1=0)
    desk.submit("t1")
    (release,) = [a for a in of(Publish, desk.decide()) if isinstance(a.event, events.TaskReleased)]
    assert [p.worker for p in desk.live.promises()] == ["w1"]
    desk.live.not_stored(release.key)
    assert desk.live.promises() == []
