"""What would happen to a task that came now: the planner's own word, and nothing is changed by asking."""

from __future__ import annotations

import msgspec

from schemas.events import Choice, TaskRouted, TaskSubmitted, Wants
from schemas.statistics import Statistics
from services.router.dispatch.outlook import Outlook
from services.router.dispatch.permits import Limit, Limits
from services.router.prospect import Prospect, prospect
from support.builders import build
from support.dispatching import Dispatch


def asked(dispatch: Dispatch, model: str = "m") -> Prospect:
    submitted = build(TaskSubmitted, task="preview", wants=Wants(model=model), client="me")
    routed = build(TaskRouted, task="preview", choice=Choice(model=model))
    before = msgspec.json.encode(dispatch.state)
    found = prospect(
        submitted, routed, dispatch.state, dispatch.live, dispatch.now, dispatch.limits, Outlook(Statistics())
    )
    assert msgspec.json.encode(dispatch.state) == before
    return found


def test_a_free_machine_would_take_it_at_once() -> None:
    dispatch = Dispatch()
    dispatch.join("w1")
    assert asked(dispatch) == Prospect(starts_s=0.0, place=1, waiting=1, model="m", worker="w1")


def test_behind_those_who_wait_it_would_wait_and_hears_why_and_how_long() -> None:
    dispatch = Dispatch()
    dispatch.join("w1")
    for n in range(3):
        dispatch.submit(f"t{n}", model="m")
    dispatch.settle()
    dispatch.start("t0", "w1")
    found = asked(dispatch)
    assert (found.place, found.waiting, found.model, found.worker) == (3, 3, "m", "w1")
    assert found.starts_s is not None and found.starts_s > 0.0
    assert found.reason is not None and found.reason.startswith("busy:")


def test_a_full_model_is_told_although_machines_are_free() -> None:
    dispatch = Dispatch(Limits(model=Limit(default=1)))
    dispatch.join("w1", free=2)
    dispatch.submit("t0", model="m")
    dispatch.settle()
    found = asked(dispatch)
    assert found.reason is not None and found.reason.startswith("model_full:")


def test_nobody_there_is_told() -> None:
    dispatch = Dispatch()
    dispatch.join("w1")
    found = asked(dispatch, model="other")
    assert found.reason is not None and found.reason.startswith("no_worker:")
    assert found.starts_s is None
