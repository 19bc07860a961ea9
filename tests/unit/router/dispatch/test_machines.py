"""What is in a machine's memory, as one pass sees it: its last load, and what ran there since."""

from __future__ import annotations

import pytest

from schemas.events import WorkerLoad
from schemas.statistics import Statistics
from services.router.dispatch.machines import machines_of
from services.router.dispatch.outlook import Outlook
from support.builders import build
from support.dispatching import Dispatch

EVERY_S = 5.0


def said(desk: Dispatch, *resident: str) -> None:
    """A heartbeat of a machine with room for one model."""
    load = build(WorkerLoad, by="w1", worker="w1", boot="b1", resident=resident, interval_s=EVERY_S, credit=None)
    desk.live.hear_load(load, desk.now)


def loaded(desk: Dispatch) -> list[str]:
    return machines_of(desk.state, desk.live, desk.now, Outlook(Statistics()))["w1"].loaded


@pytest.fixture
def desk() -> Dispatch:
    """``a`` was in memory; a task for ``b`` has pushed it out, and ended before the next heartbeat."""
    desk = Dispatch()
    desk.join("w1", "a", "b")
    said(desk, "a")
    desk.submit("t1", model="b")
    desk.settle()
    desk.start("t1", "w1")
    desk.wait(1.0)
    desk.decide()
    desk.complete("t1")
    return desk


def test_the_model_of_an_attempt_that_just_ended_is_in_memory_and_what_it_pushed_out_is_not(desk: Dispatch) -> None:
    assert loaded(desk) == ["b"]


def test_a_heartbeat_that_was_looked_up_before_does_not_bring_the_old_model_back(desk: Dispatch) -> None:
    desk.wait(EVERY_S / 2)
    said(desk, "a")
    assert loaded(desk) == ["b"]


def test_a_later_heartbeat_is_believed(desk: Dispatch) -> None:
    desk.wait(2 * EVERY_S)
    said(desk, "a")
    assert loaded(desk) == ["a"]
