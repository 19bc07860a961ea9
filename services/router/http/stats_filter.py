"""Which statistics does a reader ask for? Pure: names to ids, unknown names refused with the nearest ones that there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, TypeVar

import msgspec

from schemas.cells import Cell
from schemas.errors import UnknownModel
from schemas.pools import Statistics
from services.router.domain_words import BUILT_IN
from services.router.fleet import Fleet
from services.router.nearest import nearest, resolve_model, resolve_worker
from services.router.port import UnknownDomain, UnknownWorker

Sort = Literal["name", "decode", "prefill", "quality", "n", "age"]
ROWS = 500
"""A page: a screen shows fewer, and the router must not stand still while it writes them."""


ROWS_MOST = 5000
Count = Annotated[int, msgspec.Meta(ge=1, le=ROWS_MOST)]
Start = Annotated[int, msgspec.Meta(ge=0)]


class StatsFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Absent fields match everything; ``worker`` is an id or a name. ``guesses`` adds pairs of which nothing was measured."""

    model: str | None = None
    domain: str | None = None
    worker: str | None = None
    sort: Sort = "name"
    guesses: bool = False
    limit: Count = ROWS
    offset: Start = 0


F = TypeVar("F", bound=StatsFilter)


def resolved(wanted: F, stats: Statistics, fleet: Fleet) -> F:
    """With the names that statistics have. Raises UnknownModel, UnknownDomain or UnknownWorker for a name that nobody in the
    fleet has and nothing was measured of."""
    return msgspec.structs.replace(
        wanted,
        model=wanted.model and _model(wanted.model, stats, fleet),
        domain=wanted.domain and _domain(wanted.domain, stats),
        worker=wanted.worker and _worker(wanted.worker, stats, fleet),
    )


def matching(stats: Statistics, wanted: StatsFilter) -> Iterator[Cell]:
    """The cells that a resolved filter means, in no order."""
    for cell in stats.cells():
        if (
            wanted.model in (None, cell.model)
            and wanted.domain in (None, cell.domain)
            and wanted.worker in (None, cell.worker)
        ):
            yield cell


def held(fleet: Fleet, wanted: StatsFilter) -> Iterator[tuple[str, str]]:
    """The (model, worker) pairs of the fleet that a resolved filter means, measured or not."""
    for worker in fleet.workers.values():
        if wanted.worker in (None, worker.id):
            for model in worker.models:
                if wanted.model in (None, model):
                    yield model, worker.id


def size_of(fleet: Fleet, model: str, worker: str | None) -> int | None:
    """The model's bytes there, None where it is not held or does not say."""
    view = fleet.workers.get(worker or "")
    info = view.models.get(model) if view is not None else None
    return info.bytes if info is not None else None


def _model(name: str, stats: Statistics, fleet: Fleet) -> str:
    measured = {cell.model for cell in stats.cells()}
    if name in measured:
        return name
    found = resolve_model(fleet, name)
    if found is None:
        raise UnknownModel(name, nearest(name, measured.union(fleet.models())))
    return found


def _domain(name: str, stats: Statistics) -> str:
    known = {cell.domain for cell in stats.cells()}.union(BUILT_IN)
    if name not in known:
        raise UnknownDomain(name, nearest(name, known))
    return name


def _worker(name: str, stats: Statistics, fleet: Fleet) -> str:
    found = resolve_worker(fleet, name)
    if found is not None:
        return found
    if any(cell.worker == name for cell in stats.cells()):
        return name  # it left, and what was measured there stayed
    called = [worker.id for worker in fleet.workers.values() if worker.name.casefold() == name.casefold()]
    raise UnknownWorker(name, tuple(called) or nearest(name, (worker.name for worker in fleet.workers.values())))
