"""What a worker's own facts and other people's leave in its record."""

from __future__ import annotations

import pytest

from schemas import events
from services.router.dispatch.engine import restore, snapshot
from support.builders import build
from support.dispatching import Dispatch


@pytest.fixture
def desk() -> Dispatch:
    desk = Dispatch()
    desk.report("w1")
    return desk


def paused(desk: Dispatch) -> tuple[bool, int | None]:
    record = desk.state.workers["w1"]
    return record.paused, record.paused_until_us


def test_a_pause_lasts_until_it_is_resumed_and_its_end_counts_from_when_it_was_stored(desk: Dispatch) -> None:
    desk.wait(10.0)
    desk.tell(build(events.WorkerPaused, worker="w1", for_s=7_200.0))
    assert paused(desk) == (True, 7_210_000_000)
    desk.tell(build(events.WorkerPaused, worker="w1", for_s=None))
    assert paused(desk) == (True, None)
    desk.tell(build(events.WorkerResumed, worker="w1", cause=None))
    assert paused(desk) == (False, None)


def test_a_pause_outlives_a_restart_of_the_worker_its_leaving_and_a_restart_of_the_router(desk: Dispatch) -> None:
    desk.tell(build(events.WorkerPaused, worker="w1", for_s=60.0))
    desk.tell(build(events.WorkerLeft, worker="w1", boot="b1"))
    desk.report("w1", boot="b2")
    desk.state = restore(snapshot(desk.state))
    assert paused(desk) == (True, 60_000_000)
    assert not desk.state.workers["w1"].left


def test_a_pause_of_a_machine_that_nobody_knows_changes_nothing(desk: Dispatch) -> None:
    desk.tell(build(events.WorkerPaused, worker="nobody"))
    assert set(desk.state.workers) == {"w1"}


def test_an_older_boots_goodbye_is_not_the_present_ones(desk: Dispatch) -> None:
    desk.report("w1", boot="b2")
    desk.tell(build(events.WorkerLeft, worker="w1", boot="b1"))
    assert not desk.state.workers["w1"].left


def test_a_record_says_when_the_log_last_heard_of_its_machine(desk: Dispatch) -> None:
    desk.wait(5.0)
    desk.report("w1", boot="b2")
    assert desk.state.workers["w1"].seen_us == 5_000_000
    desk.wait(5.0)
    desk.tell(build(events.WorkerLeft, worker="w1", boot="b2"))
    assert desk.state.workers["w1"].seen_us == 10_000_000
