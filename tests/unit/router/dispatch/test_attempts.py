"""Released attempts: what does not start, what nobody mentions, and what runs although it should not."""

from __future__ import annotations

import pytest

from schemas import events
from schemas.subjects import fail_id, start_id
from services.router.dispatch.actions import DeleteItem, Publish, PutItem, Tell
from support.builders import build
from support.dispatching import Dispatch, facts, of


@pytest.fixture
def desk() -> Dispatch:
    """One task released to the group of two workers; w1 is expected."""
    desk = Dispatch()
    desk.join("w1")
    desk.join("w2", priority=3)
    desk.credit("w1")
    desk.submit("t1")
    desk.settle()
    assert desk.task("t1").attempts[1].expected == "w1"
    return desk


def failed(desk: Dispatch, msg_id: str) -> events.AttemptFailed:
    event = desk.stored[msg_id]
    assert isinstance(event, events.AttemptFailed)
    return event


def test_what_does_not_start_in_time_is_revoked_under_the_claims_id_and_goes_elsewhere(desk: Dispatch) -> None:
    desk.wait(1.9)
    assert desk.settle() == []
    desk.wait(0.2)
    done = desk.settle()
    revoked = failed(desk, start_id("t1", 1))
    assert (revoked.failure, revoked.worker, revoked.model, revoked.digest) == ("not_started", "w1", "m", "d-m")
    assert (revoked.domain, revoked.epoch, revoked.elapsed_s) == ("code", 1, None)
    assert of(DeleteItem, done)
    assert desk.task("t1").attempts[2].expected == "w2"


def test_a_start_that_was_faster_than_its_revocation_counts(desk: Dispatch) -> None:
    desk.wait(2.1)
    revocation = next(action for action in of(Publish, desk.decide()) if action.msg_id == start_id("t1", 1))
    desk.stored[revocation.msg_id] = build(events.TaskStarted, task="t1", attempt=1, worker="w1", boot="b1")
    desk.start("t1", "w1")
    desk.do(revocation)
    assert desk.settle() == []
    assert desk.task("t1").live is not None


def test_an_item_that_the_server_gave_up_is_revoked(desk: Dispatch) -> None:
    desk.live.revoked.add(("t1", 1))
    desk.settle()
    assert failed(desk, start_id("t1", 1)).detail == "delivered too often without a start"
    assert desk.task("t1").attempts[2].expected == "w1"


def test_when_the_last_holder_leaves_what_has_not_started_goes_back_to_the_queue(desk: Dispatch) -> None:
    desk.tell(build(events.WorkerLeft, worker="w1", boot="b1"))
    assert desk.settle() == []  # w2 may still take it
    desk.report("w2", "other")
    desk.settle()
    assert failed(desk, start_id("t1", 1)).detail == "nobody who may serve it holds m any more"
    assert desk.task("t1").attempts[2].model == "other"  # its client left it open


def test_a_lease_is_extended_by_the_boot_that_claimed_and_by_tokens_only(desk: Dispatch) -> None:
    desk.start("t1", "w1")
    desk.settle()
    for by_token in (False, True):
        desk.wait(29.0)
        if by_token:
            desk.live.hear_token(("t1", 1), desk.now)
        else:
            desk.credit("w1", ("t1", 1), free=0)
        desk.wait(29.0)
        assert "attempt.failed" not in facts(desk.settle())
        desk.credit("w1", ("t1", 1), free=0)
    desk.wait(29.0)
    desk.credit("w2", ("t1", 1), free=0, boot="b2")  # somebody else's word
    desk.wait(2.0)
    assert "attempt.failed" in facts(desk.settle())
    lost = failed(desk, fail_id("t1", 1, 1))
    assert (lost.failure, lost.worker, lost.model, lost.digest) == ("lost", "w1", "m", "d-m")
    assert lost.elapsed_s == pytest.approx(4 * 29.0 + 29.0 + 2.0)


@pytest.mark.parametrize("by", ["report", "credit"])
def test_another_boot_of_the_worker_ends_its_attempts_at_once(desk: Dispatch, by: str) -> None:
    desk.start("t1", "w1")
    desk.settle()
    if by == "report":
        desk.report("w1", boot="b2")
    else:
        desk.credit("w1", boot="b2")
    desk.settle()
    assert failed(desk, fail_id("t1", 1, 1)).detail == "w1 restarted"


def test_a_zombie_is_cancelled_again_and_again_while_its_worker_is_there(desk: Dispatch) -> None:
    desk.start("t1", "w1")
    desk.fail("t1", "lost")
    desk.credit("w1", ("t1", 1), free=0)

    def cancels() -> list[str]:
        return [tell.worker for tell in of(Tell, desk.settle()) if tell.control.command == "cancel"]

    assert cancels() == ["w1"]
    assert cancels() == []
    desk.wait(1.0)
    assert cancels() == ["w1"]
    desk.wait(16.0)
    assert cancels() == []  # silent for too long: nobody there to listen


def test_a_revoked_attempt_is_never_put_again(desk: Dispatch) -> None:
    desk.live.items.clear()
    desk.live.revoked.add(("t1", 1))
    assert [put.attempt for put in of(PutItem, desk.settle())] == [("t1", 2)]


def test_an_attempt_that_the_log_does_not_know_yet_is_left_alone_for_a_while(desk: Dispatch) -> None:
    """A router that woke up hears credits of attempts that its successor released before it reads of them."""
    for seconds, cancelled in ((0.0, False), (9.0, False), (1.5, True)):
        desk.wait(seconds)
        desk.credit("w2", ("t1", 7), free=0)
        tells = [tell.control for tell in of(Tell, desk.settle()) if tell.control.command == "cancel"]
        assert [(tell.task, tell.attempt) for tell in tells] == ([("t1", 7)] if cancelled else [])
