"""S7: a reaper took "not assigned yet" for "its worker died" after 15 s, and sent all that waited to one machine.

What must hold instead: only leases are reaped, never waiting tasks.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from schemas.events import AttemptFailed, TaskReleased, Wants
from services.router.dispatch.live import ALIVE_S, LEASE_S
from services.router.dispatch.planner import plan
from support.dispatching import Dispatch, facts
from support.proving import MODEL, check_promises
from support.stub_server import Pace, StubServer
from support.told_fleets import Machine, told_fleet

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


async def test_s7_what_waits_its_turn_is_left_alone(tmp_path: Path) -> None:
    """Eight tasks of a second each on two machines. One that waits for seconds has no worker that could have died."""
    machines = {name: Machine(StubServer({MODEL: Pace(token_s=0.1)})) for name in ("one", "two")}
    async with told_fleet(tmp_path, machines) as proof:
        tasks = [await proof.submit(max_tokens=10) for _ in range(8)]
        ends = await proof.all_ended(tasks)
        log = await proof.log()
        assert [e.event for e in log if isinstance(e.event, AttemptFailed)] == []
        released = Counter(e.event.task for e in log if isinstance(e.event, TaskReleased))
        assert released == dict.fromkeys(tasks, 1)
        assert max(end["status"]["waited_s"] for end in ends) > 2.0, "some waited longer than a start may take"
        assert sorted(Counter(end["worker_name"] for end in ends)) == ["one", "two"]
        assert min(Counter(end["worker_name"] for end in ends).values()) >= 3
        check_promises(log, tasks)
