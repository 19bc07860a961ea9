"""The group or a lane: a task goes to the machine that the plan wants, or to one that is as good."""

from __future__ import annotations

import pytest

from schemas import events
from schemas.events import WorkerLoad
from services.router.dispatch.actions import Publish
from support.builders import build
from support.dispatching import Dispatch, of


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
