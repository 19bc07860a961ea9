"""What was measured, in units people read, and what does the planner make of it?

Pure: integer cells to rows. A field without samples is null, with n 0 and a reason, and never a 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from schemas.cells import Cell, CellKey, Rates, Sums, key_of
from schemas.events import Level, Measure
from schemas.explanation import quality_spread, spread_of
from schemas.pools import Statistics, others_weight, slowdown
from schemas.statistics import Effective, effective
from services.router.fleet import Fleet
from services.router.http.stats_filter import Sort, StatsFilter, held, matching, size_of

MICRO = 1_000_000
MILLI = 1_000
NO_MACHINE = "a judgement of the model wherever it ran; speed belongs to a machine"
REASONS = {
    "load": "it was never loaded for an answer there",
    "quality": "no answer was judged yet",
    "slowdown": "it never ran both alone and in several streams",
    "others_weight": "it never ran both alone and beside other users",
}
NOT_MEASURED = "nothing was measured of just this yet"


class FieldRow(msgspec.Struct, frozen=True, kw_only=True):
    """Of this cell's own samples. ``reason`` says why ``value`` is null."""

    value: float | None
    unit: str
    n: int
    p50: float | None
    p95: float | None
    reason: str | None = None


class Expected(msgspec.Struct, frozen=True, kw_only=True):
    """What the planner counts with, and from which level, how many samples and how old it is. ``spread`` is how far off it may
    well be, in its own unit (one standard deviation); null where that is not known."""

    value: float | None
    unit: str
    level: Level
    n: int
    age_s: float | None
    spread: float | None = None
    reason: str | None = None


class Restarted(msgspec.Struct, frozen=True, kw_only=True):
    """Why and when the cell began anew: its model's file (``digest``, ``quantisation``) or its speed (``drift``) changed. ``n``
    samples before it are a prior of at most three; ``before`` is the rate of the last of them, in tokens/s."""

    why: str
    age_s: float
    n: int
    before: float | None


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
    restarted: Restarted | None
    fields: dict[str, FieldRow]
    expected: dict[str, Expected]


class StatsPage(msgspec.Struct, frozen=True, kw_only=True):
    """``total`` rows match; ``next_offset`` is null on the last page."""

    rows: tuple[StatsRow, ...]
    total: int
    next_offset: int | None


def stats_page(stats: Statistics, fleet: Fleet, wanted: StatsFilter, now_us: int) -> StatsPage:
    """``wanted`` is resolved. Only the page's rows are made; what they are sorted by is known before."""
    names = fleet.names()
    cells = list(matching(stats, wanted))
    cells += _unmeasured(stats, fleet, wanted, cells) if wanted.guesses else ()
    cells.sort(key=_order(wanted.sort, names))
    end = wanted.offset + wanted.limit
    rows = tuple(stats_row(cell, stats, fleet, names, now_us) for cell in cells[wanted.offset : end])
    return StatsPage(rows=rows, total=len(cells), next_offset=end if end < len(cells) else None)


def stats_row(cell: Cell, stats: Statistics, fleet: Fleet, names: dict[str, str], now_us: int) -> StatsRow:
    heard = [at_us for at_us in (cell.speed_at_us, cell.quality_at_us) if at_us is not None]
    size = size_of(fleet, cell.model, cell.worker)
    known = effective(stats, cell.model, cell.domain, cell.worker or "", model_bytes=size, now_us=now_us)
    return StatsRow(
        model=cell.model,
        domain=cell.domain,
        worker=cell.worker,
        worker_name=None if cell.worker is None else names.get(cell.worker, cell.worker),
        ok_n=cell.ok_n,
        fail_n=cell.fail_n,
        age_s=max(0.0, (now_us - max(heard)) / MICRO) if heard else None,
        digest=cell.digest,
        restarted=_restarted(cell, now_us),
        fields=field_rows(cell),
        expected=_expected(known, quality_spread(stats, cell.model, cell.domain), has_machine=cell.worker is not None),
    )


def _restarted(cell: Cell, now_us: int) -> Restarted | None:
    found = cell.restarted
    if found is None:
        return None
    age_s = max(0.0, (now_us - found.at_us) / MICRO)
    return Restarted(why=found.why, age_s=age_s, n=found.n, before=_scaled(found.rate, MILLI))


def field_rows(cell: Cell) -> dict[str, FieldRow]:
    rows = {
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
    }
    ran = cell.worker is not None
    return {
        name: row
        if row.value is not None
        else msgspec.structs.replace(
            row, reason=REASONS.get(name, NOT_MEASURED) if ran or name == "quality" else NO_MACHINE
        )
        for name, row in rows.items()
    }


def _expected(known: Effective, quality_off: float, *, has_machine: bool) -> dict[str, Expected]:
    def row(measure: Measure, unit: str, spread: float | None = None) -> Expected:
        return Expected(
            value=measure.value, unit=unit, level=measure.level, n=measure.n, age_s=measure.age_s, spread=spread
        )

    rows = {
        "decode": row(known.decode, "tok/s", (known.decode.value or 0.0) * spread_of(known)),
        "prefill": row(known.prefill, "tok/s"),
        "load": row(known.load, "s"),
    }
    if not has_machine:
        gone = {"value": None, "n": 0, "age_s": None, "spread": None, "level": "prior", "reason": NO_MACHINE}
        rows = {name: msgspec.structs.replace(found, **gone) for name, found in rows.items()}
    judged = row(known.quality, "0-1", None if known.quality.level == "prior" else quality_off)
    return rows | {"output_tokens": row(known.output_tokens, "tok"), "quality": judged}


def _unmeasured(stats: Statistics, fleet: Fleet, wanted: StatsFilter, measured: Iterable[Cell]) -> list[Cell]:
    """Empty cells of the pairs that are held, for each domain in which anything was measured."""
    there = {key_of(cell) for cell in measured}
    domains = sorted({cell.domain for cell in stats.cells()}) if wanted.domain is None else [wanted.domain]
    keys: list[CellKey] = [(model, domain, worker) for model, worker in held(fleet, wanted) for domain in domains]
    return [
        Cell(model=model, domain=domain, worker=worker)
        for model, domain, worker in keys
        if (model, domain, worker) not in there
    ]


def _order(sort: Sort, names: dict[str, str]) -> Callable[[Cell], tuple[float, str, str, str, str]]:
    """By what was measured of the cell itself, the best or youngest or most first; what was not measured comes last."""
    best = _BEST[sort]

    def key(cell: Cell) -> tuple[float, str, str, str, str]:
        worker = cell.worker or ""
        return best(cell), cell.model, cell.domain, names.get(worker, worker), worker

    return key


def _fastest(rates: Rates) -> float:
    return -rates.wtok / rates.wus if rates.wus > 0 else 0.0


def _youngest(cell: Cell) -> float:
    return -float(max(cell.speed_at_us or 0, cell.quality_at_us or 0))


_BEST: dict[Sort, Callable[[Cell], float]] = {
    "name": lambda _: 0.0,
    "decode": lambda cell: _fastest(cell.decode),
    "prefill": lambda cell: _fastest(cell.prefill),
    "quality": lambda cell: -cell.quality.wx / cell.quality.w if cell.quality.w > 0 else 1.0,
    "n": lambda cell: -float(cell.ok_n + cell.fail_n),
    "age": _youngest,
}


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
