"""S7: a reaper took "not assigned yet" for "its worker died" after 15 s, and sent all that waited to one machine.

What must hold instead: only leases are reaped, never waiting tasks.
"""

from __future__ import annotations

import pytest

from schemas.events import Wants
from services.router.dispatch.live import ALIVE_S, LEASE_S
from services.router.dispatch.planner import plan
from support.dispatching import Dispatch, facts

HOURS_S = 3 * 3_600.0
WAITING = ("second", "third", "fourth")


@pytest.fixture
def desk() -> Dispatch:
    """One machine busy with the first task; three more wait."""
    desk = Dispatch()
    desk.join("w1")
    for task in ("first", *WAITING):
        desk.submit(task, model="m")
        desk.settle()
    desk.start("first", "w1")
    return desk


def waiting(desk: Dispatch) -> set[str]:
    return {task for task in WAITING if not desk.task(task).attempts and desk.task(task).terminal is None}


def test_a_task_that_was_never_assigned_waits_for_hours_and_nobody_calls_it_lost(desk: Dispatch) -> None:
    until = desk.now + HOURS_S
    while desk.now < until:
        desk.wait(ALIVE_S / 2)
        desk.credit("w1", ("first", 1), free=0)
        assert facts(desk.settle()) == []
    assert waiting(desk) == set(WAITING)
    assert set(plan(desk.state, desk.live, desk.now, desk.limits).holds) == set(WAITING)


def test_when_the_worker_dies_its_lease_alone_is_reaped(desk: Dispatch) -> None:
    desk.join("w2", "other")
    done = []
    for _ in range(int(2 * LEASE_S)):
        desk.wait(1.0)
        desk.credit("w2")
        done += facts(desk.settle())
    assert done == ["attempt.failed"]
    assert (desk.task("first").attempts[1].failure, desk.task("first").live) == ("lost", None)
    assert waiting(desk) == set(WAITING)


def test_what_waited_while_its_machine_was_dead_goes_to_free_credits_and_not_all_to_one_machine(desk: Dispatch) -> None:
    for _ in range(int(2 * LEASE_S)):
        desk.wait(1.0)
        desk.settle()
    for worker in ("w2", "w3"):
        desk.join(worker)
    desk.settle()
    live = {task: desk.task(task).live for task in ("first", *WAITING)}
    assert sorted(attempt.expected or "" for attempt in live.values() if attempt is not None) == ["w2", "w3"]


def test_a_task_for_one_machine_waits_for_it_although_another_is_free(desk: Dispatch) -> None:
    desk.join("w2")
    desk.submit("mine", wants=Wants(model="m", worker="w1"))
    desk.settle()
    desk.wait(LEASE_S / 2)
    desk.credit("w1", ("first", 1), free=0)
    desk.settle()
    assert desk.task("mine").attempts == {}
