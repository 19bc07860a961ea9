"""What would the router decide, candidate by candidate? Pure: a decision and the fleet to the preview's rows."""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.events import Candidate, Choice, Domain, Level, Policy, Removal, TaskRouted
from schemas.subjects import group_durable, lane_durable
from services.router.decision_words import named
from services.router.fleet import Fleet, WorkerView
from services.router.port import Submitted
from services.router.prospect import Prospect


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    """The candidate's machine at this moment. ``armed``: it waits for exactly this model's work."""

    slots: int | None
    free: int | None
    running: int | None
    waiting_s: float | None
    armed: bool | None


class ChoiceRow(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    worker: str | None
    worker_name: str | None
    reason: str


class RemovalRow(msgspec.Struct, frozen=True, kw_only=True):
    model: str
    worker: str | None
    worker_name: str | None
    reason: str


class ProspectRow(msgspec.Struct, frozen=True, kw_only=True):
    """What would happen now: at once (``starts_s`` 0, and where), or after ``starts_s`` seconds, and why not at once."""

    starts_s: float | None
    place: int
    waiting: int
    reason: str | None
    model: str | None
    worker: str | None
    worker_name: str | None


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    domain: Domain
    language: str | None
    choice: ChoiceRow | None
    policy: Policy
    position: int
    candidates: tuple[dict[str, Any], ...]
    removed: tuple[RemovalRow, ...]
    words: tuple[str, ...]
    prospect: ProspectRow | None = None


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """A decision in one line, for the reply to a submission. ``cost_s`` and ``quality`` are the chosen candidate's; the quality
    comes from ``quality_n`` judgements at ``quality_level``, of which ``prior`` means that nothing was judged yet."""

    model: str | None
    worker: str | None
    worker_name: str | None
    reason: str | None
    expected_s: float | None
    cost_s: float | None
    quality: float | None
    quality_level: Level | None
    quality_n: int | None
    candidates: int
    removed: int


def preview_of(seen: Submitted, decision: TaskRouted, fleet: Fleet, words: list[str]) -> Preview:
    return Preview(
        domain=seen.domain,
        language=seen.language,
        choice=_choice_row(decision.choice, fleet),
        policy=decision.policy,
        position=decision.position,
        candidates=tuple(_candidate_row(candidate, fleet) for candidate in decision.candidates),
        removed=tuple(_removal_row(removal, fleet) for removal in decision.removed),
        words=(*words, *([f"Note: {seen.warning}."] if seen.warning else ())),
        prospect=_prospect_row(seen.prospect, fleet),
    )


def _prospect_row(found: Prospect | None, fleet: Fleet) -> ProspectRow | None:
    if found is None:
        return None
    return ProspectRow(**msgspec.structs.asdict(found), worker_name=_name(fleet, found.worker))


def decided(decision: TaskRouted, fleet: Fleet) -> Decided:
    choice = decision.choice
    chosen = [
        c for c in decision.candidates if choice is not None and (c.model, c.worker) == (choice.model, choice.worker)
    ]
    return Decided(
        model=choice.model if choice is not None else None,
        worker=choice.worker if choice is not None else None,
        worker_name=_name(fleet, choice.worker) if choice is not None else None,
        reason=choice.reason if choice is not None else None,
        expected_s=chosen[0].predicted.total_s if chosen else None,
        cost_s=chosen[0].cost_s if chosen else None,
        quality=chosen[0].quality.value if chosen else None,
        quality_level=chosen[0].quality.level if chosen else None,
        quality_n=chosen[0].quality.n if chosen else None,
        candidates=len(decision.candidates),
        removed=len(decision.removed),
    )


def _candidate_row(candidate: Candidate, fleet: Fleet) -> dict[str, Any]:
    """Everything the decision says of it, whatever fields it may gain, and its machine beside it."""
    worker = fleet.workers.get(candidate.worker)
    info = worker.models.get(candidate.model) if worker is not None else None
    capability = info.capability if info is not None else None
    return {
        **msgspec.structs.asdict(candidate),
        "worker_name": worker.name if worker is not None else candidate.worker,
        "capability": capability,
        "queue": _queue(worker, candidate.model, capability),
    }


def _queue(worker: WorkerView | None, model: str, capability: str | None) -> Queue:
    if worker is None:
        return Queue(slots=None, free=None, running=None, waiting_s=None, armed=None)
    armed: bool | None = None
    if worker.credit_age_s is not None and capability is not None:
        armed = group_durable(capability, model) in worker.armed or lane_durable(worker.id) in worker.armed
    return Queue(slots=worker.slots, free=worker.free, running=worker.running, waiting_s=worker.wait_s, armed=armed)


def _choice_row(choice: Choice | None, fleet: Fleet) -> ChoiceRow | None:
    if choice is None:
        return None
    return ChoiceRow(
        model=choice.model, worker=choice.worker, worker_name=_name(fleet, choice.worker), reason=choice.reason
    )


def _removal_row(removal: Removal, fleet: Fleet) -> RemovalRow:
    return RemovalRow(
        model=removal.model,
        worker=removal.worker,
        worker_name=_name(fleet, removal.worker),
        reason=named(removal.reason, fleet.names()),
    )


def _name(fleet: Fleet, worker: str | None) -> str | None:
    if worker is None:
        return None
    view = fleet.workers.get(worker)
    return view.name if view is not None else worker
