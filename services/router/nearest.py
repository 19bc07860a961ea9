"""Which of the fleet's names somebody meant.

Answers "is this a model or a worker of ours, and if not, what is close?". A name that a backend uses for a model stands for
the canonical one; nothing is ever guessed, near misses are only suggested.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from schemas.events import ModelInfo
from services.router.fleet import Fleet

_SUGGESTIONS = 3
_LATEST = ":latest"


def nearest(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """The closest names, best first, at most three; where nothing is close, the first three there are."""
    known = sorted(set(names))
    folded = {known_name.casefold(): known_name for known_name in known}
    wanted = name.casefold()
    close = difflib.get_close_matches(wanted, folded, n=_SUGGESTIONS, cutoff=0.5)
    related = [other for other in folded if other.startswith(wanted) or wanted.startswith(other)]
    found = dict.fromkeys((*close, *related)) or dict.fromkeys(folded)
    return tuple(folded[key] for key in found)[:_SUGGESTIONS]


def resolve_model(fleet: Fleet, name: str) -> str | None:
    """The canonical name of ``name``: itself, or the one that a backend's name or alias of it means. None: nobody holds it."""
    if any(name in worker.models for worker in fleet.workers.values()):
        return name
    found = {
        canonical
        for worker in fleet.workers.values()
        for canonical, info in worker.models.items()
        if is_called(info, name)
    }
    return min(found) if found else None


def is_called(info: ModelInfo, name: str) -> bool:
    """Whether ``name`` means this model: its canonical name, its backend's, or an alias."""
    wanted = _folded(name)
    return any(_folded(alias) == wanted for alias in (info.name, info.backend_name, *info.aliases))


def known_models(fleet: Fleet) -> tuple[str, ...]:
    """Every name that ``resolve_model`` would accept, for suggestions."""
    return tuple(
        sorted({n for w in fleet.workers.values() for m, info in w.models.items() for n in (m, *info.aliases)}),
    )


def resolve_worker(fleet: Fleet, name: str) -> str | None:
    """The id of the worker with this id or, where exactly one has it, this name."""
    if name in fleet.workers:
        return name
    called = [worker.id for worker in fleet.workers.values() if worker.name.casefold() == name.casefold()]
    return called[0] if len(called) == 1 else None


def _folded(name: str) -> str:
    return name.casefold().removesuffix(_LATEST)
