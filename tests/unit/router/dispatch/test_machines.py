"""Machines as one pass sees them: who is there, when is a slot free, what is in memory (its last load, and what ran since)?"""

from __future__ import annotations

import pytest

from schemas import events
from schemas.events import Credit, RunningAttempt, WorkerLoad
from schemas.statistics import Statistics
from services.router.dispatch.machines import machines_of
from services.router.dispatch.outlook import Outlook
from support.builders import build
from support.dispatching import Dispatch
from support.planning import Planning, taking

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


def test_silence_keeps_no_model_in_memory_longer_than_a_heartbeat_would(desk: Dispatch) -> None:
    """A machine that never sends a heartbeat, beside one that says each time that nothing is loaded any more."""
    desk.join("w2", "a", "b")
    desk.live.workers["w2"].used["b"] = desk.now
    there = machines_of(desk.state, desk.live, desk.now, Outlook(Statistics()))
    assert there["w2"].loaded == ["b"]
    desk.wait(EVERY_S + 0.1)
    desk.credit("w1")
    desk.credit("w2")
    said(desk)
    there = machines_of(desk.state, desk.live, desk.now, Outlook(Statistics()))
    assert (there["w1"].loaded, there["w2"].loaded) == ([], [])
    assert (there["w1"].resident_known, there["w2"].resident_known) == (True, False)


def test_room_is_learned_from_what_was_ever_loaded_together() -> None:
    desk = Planning()
    infos = tuple(events.ModelInfo(name=m, backend_name=m, bytes=size) for m, size in (("a", 4), ("b", 2), ("c", 3)))
    desk.joins("w1", models=infos, resident=("a",))
    desk.busy("w1", "t1", "b", free=1)
    assert desk.machines()["w1"].loaded == ["b"]  # never seen together
    desk.says("w1", ("a", "b"))
    assert desk.machines()["w1"].room == (6, 2)
    assert desk.machines()["w1"].loaded == ["a", "b"]
    desk.busy("w1", "t2", "c")
    assert desk.machines()["w1"].loaded == ["b", "c"], "5 bytes fit where 6 did, 9 do not"


def test_what_was_released_last_is_in_memory_last_whoever_came_first() -> None:
    desk = Planning()
    desk.joins("w1", "a", "b", free=2, resident=())
    desk.arrives("early", model="a")
    desk.busy("w1", "late", "b", free=1)
    desk.busy("w1", "early", "a")
    assert desk.machines()["w1"].loaded == ["a"], "room for one was seen"


def test_a_slot_is_free_when_the_prediction_says_so() -> None:
    desk = Planning()
    desk.joins("w1")
    desk.busy("w1", "t1", left_s=12.0)
    assert desk.machines()["w1"].wait_s == 12.0
    desk.wait(5.0)
    desk.credit("w1", ("t1", 1), free=0)
    assert desk.machines()["w1"].wait_s == pytest.approx(7.0)
    desk.wait(15.0)
    desk.credit("w1", ("t1", 1), free=0)
    assert desk.machines()["w1"].wait_s == pytest.approx(3.0), "15 % of 20 s"


def test_a_workers_own_clock_counts_for_how_far_its_attempt_is() -> None:
    desk = Planning()
    desk.joins("w1")
    desk.busy("w1", "t1", left_s=12.0)
    running = (RunningAttempt(task="t1", attempt=1, phase="decode", elapsed_s=10.0),)
    desk.live.hear_credit(Credit(worker="w1", boot="b1", seq=99, slots=1, free=0, running=running), desk.now)
    assert desk.machines()["w1"].wait_s == pytest.approx(2.0)


def test_an_attempt_that_another_machine_took_is_priced_at_that_ones_speed() -> None:
    desk = Planning(speeds={("m", "w2"): taking(38.0)})
    desk.joins("w1")
    desk.joins("w2")
    desk.arrives("t1", model="m")
    desk.busy("w1", "t1")
    desk.task("t1").attempts[1].worker = "w2"
    assert desk.machines()["w2"].ends == [pytest.approx(40.0)]


def test_a_slot_that_a_worker_does_not_offer_is_no_slot() -> None:
    """Of two slots one runs and the other is withheld: the next task begins when the first ends, not at once."""
    desk = Planning()
    desk.joins("w1", free=2)
    desk.busy("w1", "t1", left_s=12.0)
    desk.credit("w1", ("t1", 1), free=0, slots=2)
    assert (desk.machines()["w1"].slots, desk.machines()["w1"].wait_s) == (1, 12.0)
    desk.credit("w1", ("t1", 1), free=1, slots=2)
    assert (desk.machines()["w1"].slots, desk.machines()["w1"].wait_s) == (2, 0.0)


def test_nobody_waits_at_a_withheld_slot_while_another_machine_is_done_sooner() -> None:
    desk = Planning(speeds={("m", "w2"): taking(15.0)})
    desk.joins("w1", free=2)
    desk.joins("w2")
    desk.busy("w1", "t1", left_s=12.0)
    desk.credit("w1", ("t1", 1), free=0, slots=2)
    desk.arrives("t2", model="m")
    assert desk.went() == [("t2", "w2")]


@pytest.mark.parametrize("out", ["paused", "draining", "suspect", "silent", "left", "down"])
def test_a_machine_that_is_out_gets_nothing(out: str) -> None:
    desk = Planning(speeds={("m", "w2"): taking(90.0)})
    desk.joins("w1")
    desk.joins("w2")
    desk.arrives("t1", model="m")
    assert desk.went() == [("t1", "w1")]
    match out:
        case "paused":
            desk.tell(build(events.WorkerPaused, worker="w1"))
        case "draining":
            desk.credit("w1", draining=True)
        case "suspect":
            desk.live.workers["w1"].suspect = True
        case "silent":
            desk.wait(6.1)
            desk.credit("w2")
        case "left":
            desk.tell(build(events.WorkerLeft, worker="w1", boot="b1"))
        case _:
            load = build(WorkerLoad, by="w1", worker="w1", boot="b1", backend_up=False, credit=None)
            desk.live.hear_load(load, desk.now)
    assert desk.went() == [("t1", "w2")]
    desk.tell(build(events.WorkerLeft, worker="w2", boot="b1"))
    assert desk.went() == []
