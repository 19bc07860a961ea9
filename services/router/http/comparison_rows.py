"""Two decisions beside each other, and a decision beside itself computed again, as JSON. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.events import Candidate
from services.router.decision_words import parts_of
from services.router.fleet import Fleet
from services.router.verification import Verification
from services.router.versus import Versus

Key = tuple[str, str]


def versus_of(found: Versus, fleet: Fleet) -> dict[str, Any]:
    """``pairs`` has every pair of either decision, the one chosen now first: its parts before and after, in seconds, null on the
    side where it is no candidate. ``choice`` and what follows are the other decision's, which is the one after where it is only a
    what-if."""
    old, new = _by_pair(found.before.candidates), _by_pair(found.after.candidates)
    keys = dict.fromkeys((*_by_pair(found.asked.candidates), *new, *old))
    return {
        "what": found.what,
        "label": found.label,
        "words": found.words,
        "what_if": found.what_if,
        "choice": found.other.choice,
        "policy": found.other.policy,
        "position": found.other.position,
        "removed": found.other.removed,
        "pairs": [_pair(key, old.get(key), new.get(key), fleet) for key in keys],
    }


def _pair(key: Key, before: Candidate | None, after: Candidate | None, fleet: Fleet) -> dict[str, Any]:
    model, worker = key
    view = fleet.workers.get(worker)
    return {
        "model": model,
        "worker": worker,
        "worker_name": view.name if view is not None else worker,
        "before": _side(before),
        "after": _side(after),
    }


def _side(candidate: Candidate | None) -> dict[str, float | None] | None:
    """``votes`` are null where no policy voted."""
    if candidate is None:
        return None
    return msgspec.structs.asdict(parts_of(candidate)) | {
        "cost_s": candidate.cost_s,
        "votes": sum(candidate.votes.values()) if candidate.votes else None,
    }


def verified_of(verification: Verification) -> dict[str, Any]:
    return msgspec.structs.asdict(verification) | {"words": verification.words}


def _by_pair(candidates: tuple[Candidate, ...]) -> dict[Key, Candidate]:
    return {(candidate.model, candidate.worker): candidate for candidate in candidates}
