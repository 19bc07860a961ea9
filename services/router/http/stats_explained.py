"""What is one cell's number made of? Pure: ``schemas.explanation`` with the names and units that people read."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from schemas.cells import Cell
from schemas.explanation import AsRan, Confidence, FieldParts, explain
from schemas.opinions import Opinions
from schemas.pools import Statistics
from services.router.fleet import Fleet
from services.router.http.stats_filter import StatsFilter, size_of
from services.router.http.stats_rows import NO_MACHINE, StatsRow, stats_row

Name = Annotated[str, msgspec.Meta(min_length=1)]
SPEEDS = ("decode", "prefill", "load", "slowdown", "others_weight", "use_known")
"""These belong to a machine."""


class ExplainCell(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``worker`` None: the judgements of the model wherever it ran."""

    model: Name
    domain: Name
    worker: Name | None = None


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """``row`` is the cell as in /stats, with nulls where nothing was measured of just this; ``fields`` are null, with a reason in
    ``unknown``, where there is no machine."""

    row: StatsRow
    model_bytes: int | None
    fields: dict[str, FieldParts | None]
    unknown: dict[str, str]
    as_ran: dict[str, AsRan]
    confidence: Confidence | None
    opinions: Opinions
    position: int


def filter_of(asked: ExplainCell) -> StatsFilter:
    return StatsFilter(model=asked.model, domain=asked.domain, worker=asked.worker)


def explained(stats: Statistics, fleet: Fleet, wanted: StatsFilter, now_us: int) -> Explained:
    """``wanted`` is resolved and names a model and a domain."""
    model, domain, worker = wanted.model or "", wanted.domain or "", wanted.worker
    size = size_of(fleet, model, worker)
    told = explain(stats, model, domain, worker or "", model_bytes=size, now_us=now_us)
    cell = stats.cell(model, domain, worker) or Cell(model=model, domain=domain, worker=worker)
    gone = () if worker is not None else SPEEDS
    fields: dict[str, Any] = {name: None if name in gone else parts for name, parts in told.fields.items()}
    return Explained(
        row=stats_row(cell, stats, fleet, fleet.names(), now_us),
        model_bytes=size or stats.typical_bytes(model),
        fields=fields,
        unknown=dict.fromkeys(gone, NO_MACHINE),
        as_ran={} if gone else told.as_ran,
        confidence=None if gone else told.confidence,
        opinions=told.opinions,
        position=stats.position,
    )
