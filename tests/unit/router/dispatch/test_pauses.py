"""When a machine's pause is over."""

from __future__ import annotations

from schemas import events
from services.router.dispatch.actions import Publish
from support.builders import build
from support.dispatching import Dispatch, facts, of


def test_a_pause_for_a_time_ends_by_itself_once_and_one_without_never() -> None:
    desk = Dispatch()
    for worker in ("w1", "w2"):
        desk.report(worker)
    desk.settle()
    desk.tell(build(events.WorkerPaused, worker="w1", for_s=60.0))
    desk.tell(build(events.WorkerPaused, worker="w2", for_s=None))
    desk.wait(59.9)
    assert "worker.resumed" not in facts(desk.settle())
    desk.wait(0.2)
    (over,) = [a.event for a in of(Publish, desk.settle()) if isinstance(a.event, events.WorkerResumed)]
    assert (over.worker, desk.state.workers["w1"].paused, desk.state.workers["w2"].paused) == ("w1", False, True)
    desk.wait(1_000.0)
    assert facts(desk.settle()) == []


def test_a_second_pause_of_a_machine_ends_as_well() -> None:
    desk = Dispatch()
    desk.report("w1")
    desk.settle()
    for _ in range(2):
        desk.tell(build(events.WorkerPaused, worker="w1", for_s=10.0))
        desk.wait(10.1)
        assert "worker.resumed" in facts(desk.settle())


def test_the_end_of_a_pause_that_is_on_its_way_does_not_end_the_next_one() -> None:
    desk = Dispatch()
    desk.report("w1")
    desk.settle()
    desk.tell(build(events.WorkerPaused, worker="w1", id="first", for_s=10.0))
    desk.wait(10.1)
    (over,) = [a.event for a in of(Publish, desk.decide()) if isinstance(a.event, events.WorkerResumed)]
    desk.tell(build(events.WorkerPaused, worker="w1", id="second", for_s=7_200.0))
    desk.tell(over)
    assert desk.state.workers["w1"].paused
    desk.tell(build(events.WorkerResumed, worker="w1", cause=None))
    assert not desk.state.workers["w1"].paused
