"""What a release keeps: the machines as they were, and all pairs only where the choice changed for a reason."""

from __future__ import annotations

from schemas.events import Choice
from services.router.dispatch.completion import Machine, Parts
from services.router.dispatch.offers import Offer
from services.router.dispatch.recording import recorded
from services.router.dispatch.releasing import Release

MACHINES = {name: Machine(worker=name, name=name.upper(), slots=1, free=1) for name in ("a", "b")}


def offer(worker: str, cost_s: float) -> Offer:
    parts = Parts(0.0, 0.0, 0.0, cost_s, 0.0)
    return Offer("m", worker, parts, 0.0, 0.5, cost_s, True, True, 0, 1, 0)


def release(chosen: Offer) -> Release:
    return Release("t", 1, "m", None, "cpu_inference", "any", chosen.worker, ("a", "b"), (), chosen)


def test_the_first_idea_needs_no_reason_and_no_other_pairs() -> None:
    a, b = offer("a", 1.0), offer("b", 3.0)
    kept = recorded(release(a), Choice(model="m", worker="a"), [a, b], MACHINES)
    assert (kept.reason, kept.offers, [i.worker for i in kept.inputs]) == (None, (), ["a", "b"])


def test_another_pair_is_recorded_beside_the_first_idea_and_says_what_that_would_cost() -> None:
    a, b = offer("a", 1.0), offer("b", 3.0)
    kept = recorded(release(a), Choice(model="m", worker="b"), [a, b], MACHINES)
    assert kept.reason == "m on B would cost 2.0 s more now"
    assert {o.worker for o in kept.offers} == {"a", "b"}


def test_between_equal_machines_the_change_is_said_and_not_documented() -> None:
    a, b = offer("a", 1.0), offer("b", 1.05)
    kept = recorded(release(a), Choice(model="m", worker="b"), [a, b], MACHINES)
    assert kept.reason is not None and kept.offers == ()
