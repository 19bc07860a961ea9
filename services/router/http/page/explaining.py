"""One decision as a table: every candidate, part by part, and who was left out with the reason. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.events import AnyEvent, Measure, TaskRouted
from services.router.decision_words import Names, Parts, decision_words, named, parts_of
from services.router.explain import story_words
from services.router.port import TaskStatus

PARTS = Parts.__struct_fields__


class CandidateView(msgspec.Struct, frozen=True, kw_only=True):
    """``parts`` in the order of ``PARTS``, None where unknown (the cost counts the worst case); ``more`` than the chosen.
    ``n`` measurements of its ``rate``, and ``points_n`` of its ``points`` of 100; 0 where that is a guess."""

    model: str
    on: str
    parts: tuple[float | None, ...]
    cost: float
    more: float
    rate: float | None
    n: int
    points: float
    points_n: int
    chosen: bool


class RemovedView(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    on: str | None
    reason: str


def explained(
    status: TaskStatus, routed: TaskRouted | None, events: tuple[AnyEvent, ...], names: Names
) -> dict[str, Any]:
    """What ``explain.html`` is given."""
    told: dict[str, Any] = {"task": status.task, "story": story_words(status, routed, events, names), "parts": PARTS}
    if routed is None:
        return {**told, "candidates": None, "removed": (), "decided": []}
    return {
        **told,
        "candidates": _candidates(routed, names),
        "removed": tuple(
            RemovedView(
                model=r.model, on=names.get(r.worker, r.worker) if r.worker else None, reason=named(r.reason, names)
            )
            for r in routed.removed
        ),
        "decided": decision_words(routed, names),
    }


def _candidates(routed: TaskRouted, names: Names) -> tuple[CandidateView, ...]:
    choice = routed.choice
    pair = (choice.model, choice.worker) if choice is not None else None
    best = next((c for c in routed.candidates if (c.model, c.worker) == pair), None)
    if best is None and choice is not None:  # the machine is whichever takes it first
        best = next((c for c in routed.candidates if c.model == choice.model), None)
    rows = []
    for each in routed.candidates:
        values = msgspec.structs.asdict(parts_of(each))
        if each.predicted.wait_s is None:
            values["wait_s"] = None
        rows.append(
            CandidateView(
                model=each.model,
                on=names.get(each.worker, each.worker),
                parts=tuple(values[part] for part in PARTS),
                cost=each.cost_s,
                more=each.cost_s - (best.cost_s if best is not None else 0.0),
                rate=each.decode.value,
                n=_samples(each.decode),
                points=100 * (each.quality.value or 0.0),
                points_n=_samples(each.quality),
                chosen=each is best,
            )
        )
    return tuple(rows)


def _samples(measure: Measure) -> int:
    return 0 if measure.level == "prior" else measure.n
