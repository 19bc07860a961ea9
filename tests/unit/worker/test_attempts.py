"""The worker's half of the protocol: what it does next, and in which order."""

from __future__ import annotations

from typing import Any

import pytest

from schemas import events
from schemas.subjects import end_id, fail_id, start_id
from schemas.work import Answer, WorkItem
from services.worker.attempts import (
    Ack,
    Arm,
    Attempts,
    Claim,
    Command,
    PublishEnd,
    Run,
    SendCredit,
    Stop,
    StoreAnswer,
    Terminate,
    cancelled_failure,
    failure,
)
from support.builders import build

KEY = ("t1", 1)


def item(task: str = "t1", attempt: int = 1, **fields: Any) -> WorkItem:
    return WorkItem(
        task=task, attempt=attempt, epoch=1, model="m", capability="cpu_inference", lane="any", domain="general",
        client="me", body="task.in.me.t1", **fields,
    )  # fmt: skip


def claim(task: str = "t1", attempt: int = 1) -> events.TaskStarted:
    return build(events.TaskStarted, task=task, attempt=attempt, worker="w1", boot="b1")


COMPLETED = build(events.TaskCompleted, task="t1", attempt=1)
ANSWER = Answer(task="t1", attempt=1, model="m", worker="w1")
FENCED = failure(item(), claim(), "fenced", retryable=False, tokens=0, detail="")


def kinds(commands: list[Command]) -> list[str]:
    return [type(command).__name__ for command in commands]


def armed(slots: int = 1) -> Attempts:
    """A worker whose pulls all stand."""
    machine = Attempts("w1", "b1", slots)
    for command in machine.start():
        assert isinstance(command, Arm)
        machine.armed(command.round)
    return machine


def running(machine: Attempts, task: str = "t1") -> None:
    machine.item_arrived(min(machine.rounds), item(task), claim(task))
    machine.claimed((task, 1), own=True)


def test_one_round_is_armed_for_each_slot_and_counts_once_its_pulls_stand() -> None:
    machine = Attempts("w1", "b1", 2)
    assert machine.start() == [Arm(1), Arm(2)]
    assert machine.free == 0
    assert machine.armed(1) == [SendCredit()]
    assert machine.free == 1


def test_an_attempt_goes_from_its_item_to_its_end_and_arms_before_it_says_so() -> None:
    machine = armed()
    (claiming,) = machine.item_arrived(1, item(), claim())
    assert isinstance(claiming, Claim) and claiming.msg_id == start_id(*KEY)
    assert machine.free == 0
    assert machine.claimed(KEY, own=True) == [Run(KEY, item()), SendCredit()]
    assert machine.completed(KEY, COMPLETED, ANSWER) == [StoreAnswer(KEY, ANSWER)]
    assert machine.stored(KEY) == [Arm(2)]
    assert machine.armed(2) == [PublishEnd(KEY, COMPLETED, end_id("t1"))]
    assert machine.running()[0].phase == "ending"
    assert machine.ended(KEY, True, FENCED) == [Ack(KEY), SendCredit()]
    assert (machine.free, machine.hands) == (1, {})


def test_an_end_leaves_right_behind_the_pulls_and_its_ack_proves_them() -> None:
    machine = armed()
    running(machine)
    machine.completed(KEY, COMPLETED, ANSWER)
    assert machine.stored(KEY) == [Arm(2)]
    assert machine.out(2) == [PublishEnd(KEY, COMPLETED, end_id("t1"))]
    assert machine.free == 0, "nobody has said yet that the pulls stand"
    machine.ended(KEY, True, FENCED)
    assert machine.free == 1


def test_pulls_that_no_end_follows_prove_nothing_and_a_lost_round_stays_lost() -> None:
    machine = armed()
    running(machine)
    machine.completed(KEY, COMPLETED, ANSWER)
    machine.stored(KEY)
    machine.out(2)
    assert machine.disarmed(2) == [Arm(3)], "the connection was lost with the pulls"
    assert machine.out(3) == []
    machine.ended(KEY, True, FENCED)
    assert machine.free == 0
    machine.armed(3)
    assert machine.free == 1


def test_what_somebody_else_claimed_never_runs() -> None:
    machine = armed()
    machine.item_arrived(1, item(), claim())
    assert kinds(machine.claimed(KEY, own=False)) == ["Terminate", "Arm", "SendCredit"]
    assert machine.hands == {}


def test_an_item_that_already_runs_here_is_ignored() -> None:
    machine = armed(2)
    running(machine)
    assert kinds(machine.item_arrived(2, item(), claim())) == ["Arm"]
    assert list(machine.hands) == [KEY]


def test_a_claim_of_unknown_fate_is_neither_run_nor_acked() -> None:
    machine = armed()
    machine.item_arrived(1, item(), claim())
    assert kinds(machine.claim_failed(KEY)) == ["Arm", "SendCredit"]


def test_an_item_whose_permits_name_others_is_refused_under_the_claims_id() -> None:
    machine = armed()
    arm, refusal = machine.item_arrived(1, item(holders=("w2",)), claim())
    assert isinstance(arm, Arm) and isinstance(refusal, PublishEnd)
    assert refusal.msg_id == start_id(*KEY)
    assert isinstance(refusal.event, events.AttemptFailed) and refusal.event.failure == "refused"
    assert kinds(machine.ended(KEY, True, FENCED)) == ["Ack", "SendCredit"]


def test_an_end_that_another_attempt_has_is_said_to_be_fenced() -> None:
    machine = armed()
    running(machine)
    machine.completed(KEY, COMPLETED, ANSWER)
    machine.stored(KEY)
    machine.armed(2)
    assert machine.ended(KEY, False, FENCED) == [PublishEnd(KEY, FENCED, fail_id(*KEY))]
    assert kinds(machine.ended(KEY, True, FENCED)) == ["Ack", "SendCredit"]


def test_a_cancel_stops_a_run_once_and_prevents_one_that_was_about_to_start() -> None:
    machine = armed(2)
    running(machine)
    assert machine.cancel(*KEY) == [Stop(KEY)]
    assert machine.cancel(*KEY) == []
    machine.item_arrived(2, item("t2"), claim("t2"))
    assert machine.cancel("t2", 1) == []
    machine.claimed(("t2", 1), own=True)
    assert not machine.wants_run(("t2", 1))
    assert machine.cancel("unknown", 1) == []


def test_a_failure_stores_nothing_and_goes_under_the_attempts_own_id() -> None:
    machine = armed()
    running(machine)
    event = cancelled_failure(item(), claim(), tokens=3)
    assert machine.failed(KEY, event) == [Arm(2)]
    assert machine.armed(2) == [PublishEnd(KEY, event, fail_id(*KEY))]
    assert (event.failure, event.retryable, event.tokens) == ("fenced", False, 3)


@pytest.mark.parametrize("how", ["item", "expired"])
def test_an_end_does_not_wait_for_a_pull_that_will_never_stand(how: str) -> None:
    """Arming first is for speed; an end that is kept back for ever would be worse than any steal."""
    machine = armed()
    running(machine)
    machine.completed(KEY, COMPLETED, ANSWER)
    assert machine.stored(KEY) == [Arm(2)]
    commands = machine.item_arrived(2, item("t2"), claim("t2")) if how == "item" else machine.disarmed(2)
    assert PublishEnd(KEY, COMPLETED, end_id("t1")) in commands
    assert kinds(commands) == (["Claim", "PublishEnd"] if how == "item" else ["Arm", "PublishEnd"])


def test_a_round_that_stood_and_expired_lets_no_end_go_ahead_of_its_own_round() -> None:
    machine = armed(2)
    running(machine)
    machine.completed(KEY, COMPLETED, ANSWER)
    assert machine.stored(KEY) == [Arm(3)]
    assert machine.disarmed(2) == [Arm(4)]
    assert kinds(machine.armed(3)) == ["PublishEnd"]


def test_each_slot_has_one_round_whatever_ends_at_once() -> None:
    machine = armed(3)
    for task in ("t1", "t2", "t3"):
        running(machine, task)
    for task in ("t1", "t2", "t3"):
        machine.failed((task, 1), cancelled_failure(item(task), claim(task), 0))
    assert len(machine.rounds) == 3
    ends = [kinds(machine.armed(number)) for number in list(machine.rounds)]
    assert ends == [["PublishEnd"]] * 3


def test_a_paused_worker_promises_nothing_arms_nothing_and_still_says_its_ends() -> None:
    machine = armed()
    running(machine)
    machine.completed(KEY, COMPLETED, ANSWER)
    machine.stored(KEY)
    assert kinds(machine.pause()) == ["PublishEnd", "SendCredit"]
    assert machine.free == 0
    assert machine.disarmed(2) == []
    assert kinds(machine.ended(KEY, True, FENCED)) == ["Ack", "SendCredit"]
    assert kinds(machine.start()) == ["Arm"]


def test_credits_list_everything_in_hand_with_its_phase() -> None:
    machine = armed(2)
    running(machine)
    machine.progress(KEY, "decode", 7)
    machine.item_arrived(2, item("t2"), claim("t2"))
    assert [(r.task, r.phase, r.tokens) for r in machine.running()] == [("t1", "decode", 7), ("t2", "claiming", 0)]
    assert machine.concurrency() == 2


def test_a_terminated_delivery_says_why() -> None:
    machine = armed()
    machine.item_arrived(1, item(), claim())
    commands = machine.claimed(KEY, own=False)
    assert commands[0] == Terminate(KEY, "another event holds the claim")
