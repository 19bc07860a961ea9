"""The desk in situations that must not stop it."""

from __future__ import annotations

from itertools import count

from schemas import events
from services.router.desk import Desk
from services.router.dispatch.actions import Publish
from services.router.dispatch.permits import Limits
from support.builders import LAPTOP, QWEN, build


def test_a_task_whose_models_last_holder_left_waits_and_stops_nobody() -> None:
    numbers = count()
    desk = Desk("router-1", slider=1.0, limits=Limits(), new_id=lambda: f"id-{next(numbers)}")
    told: list[events.AnyEvent] = [
        build(events.DispatcherElected, epoch=1),
        build(events.WorkerReported),
        build(events.TaskSubmitted, wants=events.Wants(model=QWEN)),
        build(events.WorkerLeft),
    ]
    desk.fold([(event, seq, seq) for seq, event in enumerate(told, 1)])
    desk.epoch = 1
    assert desk.decide(1.0) == []
    desk.fold([(build(events.WorkerReported, worker=LAPTOP, by=LAPTOP), 5, 5)])
    published = [action.event for action in desk.decide(2.0) if isinstance(action, Publish)]
    routed = next(event for event in published if isinstance(event, events.TaskRouted))
    assert routed.choice is not None
    assert (routed.choice.model, routed.choice.worker) == (QWEN, LAPTOP)
