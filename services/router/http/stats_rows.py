"""What was measured, in units people read? Pure: integer cells to rows. A field without samples is null, with n 0."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from schemas.cells import Cell, Rates, Sums
from schemas.errors import UnknownModel
from schemas.pools import others_weight, slowdown
from services.router.fleet import Fleet
from services.router.nearest import nearest
from services.router.port import UnknownWorker

MICRO = 1_000_000
MILLI = 1_000


class FieldRow(msgspec.Struct, frozen=True, kw_only=True):
    value: float | None
    unit: str
    n: int
    p50: float | None
    p95: float | None


class StatsRow(msgspec.Struct, frozen=True, kw_only=True):
    """One finest cell. ``age_s`` is the age of its youngest sample."""

    model: str
    domain: str
    worker: str | None
    worker_name: str | None
    ok_n: int
    fail_n: int
    age_s: float | None
    digest: str | None
    fields: dict[str, FieldRow]


class StatsFilter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Absent fields match everything; ``worker`` is an id or a name."""

    model: str | None = None
    domain: str | None = None
    worker: str | None = None


def refuse_unknown(cells: Iterable[Cell], fleet: Fleet, wanted: StatsFilter) -> None:
    """Raises UnknownModel or UnknownWorker for a name that nobody in the fleet has and nothing was measured of."""
    seen = tuple(cells)
    models = {*fleet.models(), *(cell.model for cell in seen)}
    if wanted.model is not None and wanted.model not in models:
        raise UnknownModel(wanted.model, nearest(wanted.model, models))
    names = {name for worker in fleet.workers.values() for name in (worker.id, worker.name)}
    names |= {cell.worker for cell in seen if cell.worker is not None}
    if wanted.worker is not None and wanted.worker not in names:
        raise UnknownWorker(wanted.worker, nearest(wanted.worker, (w.name for w in fleet.workers.values())))


def stats_rows(cells: Iterable[Cell], fleet: Fleet, wanted: StatsFilter, now_us: int) -> tuple[StatsRow, ...]:
    """Sorted by model, domain, worker."""
    names = {worker.id: worker.name for worker in fleet.workers.values()}
    rows = [_row(cell, names, now_us) for cell in cells if _matches(cell, names, wanted)]
    return tuple(sorted(rows, key=lambda row: (row.model, row.domain, row.worker_name or "", row.worker or "")))


def _matches(cell: Cell, names: dict[str, str], wanted: StatsFilter) -> bool:
    return (
        wanted.model in (None, cell.model)
        and wanted.domain in (None, cell.domain)
        and (wanted.worker is None or wanted.worker in (cell.worker, names.get(cell.worker or "")))
    )


def _row(cell: Cell, names: dict[str, str], now_us: int) -> StatsRow:
    heard = [at_us for at_us in (cell.speed_at_us, cell.quality_at_us) if at_us is not None]
    return StatsRow(
        model=cell.model,
        domain=cell.domain,
        worker=cell.worker,
        worker_name=None if cell.worker is None else names.get(cell.worker, cell.worker),
        ok_n=cell.ok_n,
        fail_n=cell.fail_n,
        age_s=max(0.0, (now_us - max(heard)) / MICRO) if heard else None,
        digest=cell.digest,
        fields={
            "queue": _mean(cell.queue, MICRO, "s"),
            "load": _mean(cell.load, MICRO, "s"),
            "prefill": _rate(cell.prefill),
            "decode": _rate(cell.decode),
            "first_token": _mean(cell.first_token, MICRO, "s"),
            "total": _mean(cell.total, MICRO, "s"),
            "output": _mean(cell.output, 1, "tok"),
            "quality": _mean(cell.quality, MICRO, "0-1"),
            "slowdown": _learned(*slowdown(cell), "per stream"),
            "others_weight": _learned(*others_weight(cell), "of their use"),
        },
    )


def _mean(sums: Sums, scale: int, unit: str) -> FieldRow:
    value = sums.wx / sums.w / scale if sums.w > 0 else None
    return FieldRow(value=value, unit=unit, n=sums.n, p50=_scaled(sums.p50, scale), p95=_scaled(sums.p95, scale))


def _rate(rates: Rates) -> FieldRow:
    """Tokens over time, not the mean of rates: long answers say more about a machine than short ones."""
    value = rates.wtok * MICRO / rates.wus if rates.wus > 0 else None
    return FieldRow(value=value, unit="tok/s", n=rates.n, p50=_scaled(rates.p50, MILLI), p95=_scaled(rates.p95, MILLI))


def _learned(n: int, weight: int, value: float, unit: str) -> FieldRow:
    """Of this cell alone; what is counted with is the machine's, which leans on a guess."""
    return FieldRow(value=value if weight else None, unit=unit, n=n, p50=None, p95=None)


def _scaled(number: int | None, scale: int) -> float | None:
    return None if number is None else number / scale
