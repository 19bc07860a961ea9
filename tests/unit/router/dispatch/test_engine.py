"""What the dispatcher decides, fact by fact: order, ends, retries, and what it remembers afterwards."""

from __future__ import annotations

import msgspec
import pytest

from schemas import events
from schemas.subjects import end_id, release_id, routed_id
from services.router.dispatch import engine
from services.router.dispatch.actions import Publish, PutItem
from services.router.dispatch.live import Wait
from services.router.dispatch.permits import Limit, Limits
from support.dispatching import Dispatch, facts, of


@pytest.fixture
def desk() -> Dispatch:
    desk = Dispatch()
    desk.join("w1")
    return desk


def test_a_new_task_is_routed_and_released_in_one_pass(desk: Dispatch) -> None:
    desk.submit("t1")
    assert facts(desk.decide()) == ["task.routed", "task.released"]


def test_the_item_follows_only_after_the_fold_has_the_release(desk: Dispatch) -> None:
    desk.submit("t1")
    actions = desk.decide()
    assert not of(PutItem, actions)
    assert desk.decide() == []
    for action in actions:
        desk.do(action)
    (put,) = of(PutItem, desk.decide())
    assert (put.attempt, put.msg_id, put.look_first) == (("t1", 1), "t1.1", False)
    assert put.item.holders == ("w1",)


def test_nothing_is_decided_before_our_epoch_is_in_the_log_or_after_a_later_one(desk: Dispatch) -> None:
    desk.submit("t1")
    desk.epoch = 2
    assert desk.decide() == []
    desk.tell(_elected(2))
    assert facts(desk.decide()) == ["task.routed", "task.released"]
    desk.tell(_elected(3))
    assert desk.decide() == []


def test_what_could_not_be_published_is_asked_for_again_under_the_same_id(desk: Dispatch) -> None:
    desk.submit("t1")
    first = of(Publish, desk.decide())
    for action in first:
        desk.live.not_stored(action.key)
    again = of(Publish, desk.decide())
    assert [a.msg_id for a in again] == [a.msg_id for a in first] == [routed_id("t1"), release_id("t1", 1)]
    assert again[0].event == first[0].event  # the decision stays as it was


def test_the_same_state_gives_the_same_decisions() -> None:
    def play() -> list[object]:
        desk = Dispatch(Limits(model=Limit(2)))
        for worker in ("w2", "w1", "w3"):
            desk.join(worker, "m", "n")
        for n in range(5):
            desk.submit(f"t{n}", model="mn"[n % 2])
        return [msgspec.structs.astuple(action) for action in desk.settle()]

    assert play() == play()


def test_a_cancelled_task_ends_and_its_item_never_runs(desk: Dispatch) -> None:
    desk.submit("t1")
    desk.settle()
    desk.live.cancels["t1"] = "gone"
    assert facts(desk.settle()) == ["attempt.failed", "task.cancelled"]
    assert desk.task("t1").attempts[1].failure == "not_started"
    assert (desk.state.held, desk.live.items, desk.live.cancels) == ({}, {}, {})


def test_a_cancel_that_comes_before_its_task_is_kept_for_it(desk: Dispatch) -> None:
    desk.live.cancels["t1"] = "gone"
    assert desk.settle() == []
    desk.submit("t1")
    assert "task.cancelled" in facts(desk.settle())
    assert desk.live.cancels == {}


def test_a_backends_failure_is_tried_again_after_a_pause_and_three_are_the_end(desk: Dispatch) -> None:
    desk.submit("t1")
    for n, pause in ((1, 1.0), (2, 5.0)):
        desk.settle()
        desk.start("t1", "w1")
        desk.fail("t1", "stall")
        desk.credit("w1")
        assert desk.settle() == []
        desk.wait(pause - 0.1)
        desk.credit("w1")
        assert desk.settle() == []
        desk.wait(0.2)
        assert facts(desk.settle()) == ["task.released"]
        assert desk.task("t1").next_attempt == n + 2
    desk.start("t1", "w1")
    desk.fail("t1", "oom")
    desk.credit("w1")
    assert facts(desk.settle()) == ["task.dead"]
    dead = desk.task("t1").terminal
    assert isinstance(dead, events.TaskDead) and dead.failures == ("stall", "stall", "oom")


def test_what_every_backend_would_refuse_is_not_tried_again(desk: Dispatch) -> None:
    desk.submit("t1")
    desk.settle()
    desk.start("t1", "w1")
    desk.fail("t1", "rejected", retryable=False)
    desk.credit("w1")
    assert facts(desk.settle()) == ["task.failed"]


def test_a_lost_attempt_is_tried_again_at_once(desk: Dispatch) -> None:
    desk.submit("t1")
    desk.settle()
    desk.start("t1", "w1")
    desk.fail("t1", "lost")
    desk.credit("w1")
    assert facts(desk.settle()) == ["task.released"]


def test_a_task_past_its_deadline_ends_and_is_not_released_by_the_way(desk: Dispatch) -> None:
    desk.credit("w1", free=0)
    desk.submit("t1", deadline_s=3.0)
    desk.settle()
    desk.wait(3.1)
    desk.credit("w1")
    assert facts(desk.decide()) == ["task.failed"]


def test_no_task_without_a_deadline_ever_ends_by_waiting() -> None:
    desk = Dispatch()
    desk.submit("t1")
    desk.settle()
    desk.wait(3_600.0)
    assert desk.settle() == []
    desk.join("w1")
    assert facts(desk.settle()) == ["task.released"]


def test_a_release_says_how_long_it_was_held_under_which_reason() -> None:
    desk = Dispatch(Limits(client=Limit(1)))
    desk.join("w1", free=2)
    for task, client in (("t1", "a"), ("t2", "a"), ("t3", "b")):
        desk.submit(task, client=client)
    released = [a.event.task for a in of(Publish, desk.settle()) if isinstance(a.event, events.TaskReleased)]
    assert released == ["t1", "t3"]
    desk.live.waits["t2"] = Wait(held_s={"client_full": 1.25})
    desk.start("t1", "w1")
    desk.complete("t1")
    desk.credit("w1", ("t3", 1))
    (second,) = [a.event for a in of(Publish, desk.settle()) if isinstance(a.event, events.TaskReleased)]
    assert (second.task, second.bypasses, second.held_s) == ("t2", 0, {"client_full": 1.25})


def test_nothing_is_remembered_of_tasks_that_have_ended(desk: Dispatch) -> None:
    for n in range(30):
        task = f"t{n}"
        desk.submit(task, deadline_s=1e6)
        desk.settle()
        desk.start(task, "w1")
        desk.settle()
        desk.credit("w1", (task, 1), free=0)
        if n % 3 == 0:
            desk.fail(task, "stall")
            desk.credit("w1")
            desk.settle()
            desk.wait(1.1)
            desk.credit("w1")
            desk.settle()
            desk.start(task, "w1")
            desk.settle()
        if n % 3 == 1:
            desk.live.cancels[task] = "gone"
            desk.live.revoked.add((task, 1))
            desk.settle()
            desk.fail(task, "fenced", retryable=False)
        else:
            desk.complete(task)
        desk.wait(1.0)
        desk.credit("w1")
        desk.settle()
    live = desk.live
    left = (live.items, live.leases, live.seen, live.waits, live.drafts, live.cancels, live.retry_at, live.pending)
    assert [dict(each) for each in left] == [{}] * len(left)
    assert (live.revoked, desk.state.tasks, desk.state.held) == (set(), {}, {})


def test_a_restored_router_goes_on_where_the_log_is() -> None:
    before = Dispatch(Limits(model=Limit(2)))
    before.join("w1", free=3)
    for n in range(4):
        before.submit(f"t{n}", deadline_s=60.0)
    before.settle()
    before.start("t0", "w1")
    before.fail("t0", "stall")
    state = engine.restore(engine.snapshot(before.state))
    assert state == before.state.without_recent()
    after = Dispatch(Limits(model=Limit(2)), epoch=2)
    after.state = state
    after.seqs = before.seqs
    after.items = before.items
    after.tell(_elected(2))
    puts = of(PutItem, after.settle())
    assert {(put.attempt, put.look_first) for put in puts} == {(("t1", 1), True)}
    after.credit("w1", free=3)
    assert facts(after.settle()) == ["task.released"]  # the model's second permit: t0's pause is not remembered


def test_an_end_of_another_attempt_stands_and_the_later_one_is_taken_back(desk: Dispatch) -> None:
    desk.submit("t1")
    desk.settle()
    desk.start("t1", "w1")
    desk.fail("t1", "lost")
    desk.credit("w1")
    desk.settle()
    desk.tell(_completed("t1", 1))
    assert facts(desk.settle()) == ["attempt.failed"]
    assert desk.state.held == {} and end_id("t1") not in desk.stored


def _elected(epoch: int) -> events.DispatcherElected:
    return events.DispatcherElected(id=f"e{epoch}", at=0.0, by="r", epoch=epoch, router="r")


def _completed(task: str, attempt: int) -> events.TaskCompleted:
    return events.TaskCompleted(
        id=f"end-{task}",
        at=0.0,
        by="w1",
        task=task,
        attempt=attempt,
        worker="w1",
        boot="b1",
        model="m",
        domain="general",
    )
