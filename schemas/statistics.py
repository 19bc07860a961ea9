"""From the finest cells to effective values: one lookup for router, worker, projector and simulator.

Answers "what should we expect of this model on this worker?", field by field: each field falls back on its own, and says
which level it came from, how many samples that is and how old they are. Speed belongs to the machine, quality to the model.
Sample counts decide how much a level leans on its parent and how uncertain it is, never the score (ROUTING.md, B3.2).

    decode, prefill, load:  cell -> (model, worker) -> worker, scaled by size -> model -> fleet and prior
    output tokens:          (model, domain) -> domain -> prior
    quality:                cell -> (model, domain) -> model -> all and prior
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Literal

from schemas.cells import WEIGHT_ONE, Cell, CellKey, Rates, Sums, fold, key_of, weight
from schemas.events import Level, Measure
from schemas.prediction import (
    UNKNOWN_WAIT_S,
    Effective,
    cost,
    factor,
    predict,
    pull_priority,
    service_seconds,
)
from schemas.samples import UNIT, Sample, sample_of

__all__ = [
    "UNKNOWN_WAIT_S",
    "Cell",
    "CellKey",
    "Effective",
    "Rates",
    "Sample",
    "Statistics",
    "Sums",
    "cost",
    "effective",
    "factor",
    "fold",
    "key_of",
    "predict",
    "pull_priority",
    "sample_of",
    "service_seconds",
    "weight",
]

Field = Literal["decode", "prefill", "load", "output", "quality"]
PoolKey = tuple[str, ...]

GB = 1e9
PRIOR_AT_1GB = {"decode": 120.0, "prefill": 3000.0, "load": 1.0}
"""A fleet of which nothing is known: tokens/s, tokens/s, loads/s (that is, 1 GB/s of disk), all for a model of 1 GB."""
PRIOR_OUTPUT_TOKENS = 300.0
PRIOR_QUALITY = 0.5

LEAN_SPEED = 2.0
LEAN_WORKER = 0.5
LEAN_FLEET = 1.0
LEAN_OUTPUT = 2.0
LEAN_QUALITY = 6.0
LEAN_QUALITY_MODEL = 4.0
"""How many samples a parent is worth (ROUTING.md, B3.2, B3.3, B3.6)."""

CONFIDENCE_HALF_LIFE_S = 14 * 86_400.0


class _Pool:
    """Integer totals of one field over the cells of one level. Integers, so that taking a cell out leaves no trace.

    ``y`` is Σ weight · ln(rate) in millionths; ``zw`` and ``z`` the same over the cells whose model size is known, with the
    rate scaled to a model of 1 GB. For output and quality ``y`` is Σ weight · value.
    """

    __slots__ = ("n", "times", "w", "y", "z", "zw")

    def __init__(self) -> None:
        self.n = self.w = self.y = self.zw = self.z = 0
        self.times: dict[CellKey, int] = {}

    def weight(self) -> float:
        return self.w / WEIGHT_ONE

    def age_s(self, now_us: int) -> float | None:
        return max(0.0, (now_us - max(self.times.values())) / UNIT) if self.times else None

    def snapshot(self) -> tuple[int, int, int, int, int, dict[CellKey, int]]:
        return self.n, self.w, self.y, self.zw, self.z, self.times


_EMPTY = _Pool()


class _Share:
    """What one cell gives to each pool of one field."""

    __slots__ = ("at_us", "n", "pools", "w", "y", "z", "zw")

    def __init__(self, pools: tuple[PoolKey, ...], n: int, w: int, y: int, at_us: int | None) -> None:
        self.pools, self.n, self.w, self.y, self.at_us = pools, n, w, y, at_us or 0
        self.zw = self.z = 0


class Statistics:
    """All finest cells, with their parents kept up to date; ``position`` is the EVENTS sequence that they reach."""

    def __init__(self, cells: Iterable[Cell] = ()) -> None:
        self.position = 0
        self._cells: dict[CellKey, Cell] = {}
        self._pools: dict[PoolKey, _Pool] = {}
        self._bytes: dict[str, dict[CellKey, int]] = {}
        for cell in cells:
            self.put(cell)

    def put(self, cell: Cell) -> None:
        """Set a cell; an older state of it than the present one is ignored, so replays and reorderings are harmless."""
        key = key_of(cell)
        before = self._cells.get(key)
        if before is not None:
            if before.last_seq > cell.last_seq:
                return
            self._add(key, before, -1)
        self._cells[key] = cell
        self._add(key, cell, 1)
        self.position = max(self.position, cell.last_seq)

    def cell(self, model: str, domain: str, worker: str | None) -> Cell | None:
        return self._cells.get((model, domain, worker))

    def cells(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def __len__(self) -> int:
        return len(self._cells)

    def pool(self, *key: str) -> _Pool:
        return self._pools.get(key, _EMPTY)

    def pools(self) -> dict[PoolKey, tuple[int, int, int, int, int, dict[CellKey, int]]]:
        """Every level's totals, for comparing two of these."""
        return {key: pool.snapshot() for key, pool in self._pools.items()}

    def typical_bytes(self, model: str) -> int | None:
        """The mean size of ``model`` over the cells that know it."""
        sizes = self._bytes.get(model)
        return sum(sizes.values()) // len(sizes) if sizes else None

    def _add(self, key: CellKey, cell: Cell, sign: int) -> None:
        if cell.model_bytes is not None:
            sizes = self._bytes.setdefault(cell.model, {})
            if sign > 0:
                sizes[key] = cell.model_bytes
            else:
                sizes.pop(key, None)
        for share in _shares(cell):
            for pool_key in share.pools:
                pool = self._pools.get(pool_key)
                if pool is None:
                    pool = self._pools[pool_key] = _Pool()
                pool.n += sign * share.n
                pool.w += sign * share.w
                pool.y += sign * share.y
                pool.zw += sign * share.zw
                pool.z += sign * share.z
                if sign > 0:
                    pool.times[key] = share.at_us
                else:
                    del pool.times[key]
                if not pool.times:
                    del self._pools[pool_key]


def _shares(cell: Cell) -> Iterator[_Share]:
    model, domain, worker = key_of(cell)
    if worker is not None:
        speeds: tuple[tuple[Field, int, int, float | None], ...] = (
            ("decode", cell.decode.n, cell.decode.w, _log(cell.decode.wtok * UNIT, cell.decode.wfree_us)),
            ("prefill", cell.prefill.n, cell.prefill.w, _log(cell.prefill.wtok * UNIT, cell.prefill.wfree_us)),
            ("load", cell.load.n, cell.load.w, _log(cell.load.w * UNIT, cell.load.wx)),
        )
        for field, n, w, y in speeds:
            if y is not None:
                yield _speed_share(cell, worker, field, n, w, y)
    pools: tuple[PoolKey, ...]
    if cell.output.w:
        pools = (("output", "md", model, domain), ("output", "d", domain))
        yield _Share(pools, cell.output.n, cell.output.w, cell.output.wx, cell.speed_at_us)
    if cell.quality.w:
        by_cell = ("quality", "c", model, domain, worker or "")
        pools = (by_cell, ("quality", "md", model, domain), ("quality", "m", model), ("quality",))
        yield _Share(pools, cell.quality.n, cell.quality.w // UNIT, cell.quality.wx // UNIT, cell.quality_at_us)


def _speed_share(cell: Cell, worker: str, field: Field, n: int, w: int, y: float) -> _Share:
    model, domain = cell.model, cell.domain
    pools = (
        (field, "c", model, domain, worker),
        (field, "mw", model, worker),
        (field, "w", worker),
        (field, "m", model),
        (field,),
    )
    share = _Share(pools, n, w, w * round(y * UNIT), cell.speed_at_us)
    if cell.model_bytes:
        share.zw, share.z = w, w * round((y + math.log(cell.model_bytes / GB)) * UNIT)
    return share


def _log(numerator: int, denominator: int) -> float | None:
    """ln of a ratio of sums, None where either is missing."""
    return math.log(numerator / denominator) if numerator > 0 and denominator > 0 else None


def effective(
    stats: Statistics, model: str, domain: str, worker: str, *, model_bytes: int | None, now_us: int
) -> Effective:
    """Expected values, each with its finest level that has data, its n and its age. ``now_us`` only makes ages.

    Where the model's size is unknown, its typical size elsewhere stands in; without one nothing is scaled.
    """
    size = model_bytes or stats.typical_bytes(model)
    log_size = math.log(size / GB) if size else None
    loads = _speed(stats, "load", model, domain, worker, log_size, now_us)
    return Effective(
        decode=_speed(stats, "decode", model, domain, worker, log_size, now_us),
        prefill=_speed(stats, "prefill", model, domain, worker, log_size, now_us),
        load=Measure(value=1.0 / (loads.value or 1.0), level=loads.level, n=loads.n, age_s=loads.age_s),
        output_tokens=_output(stats, model, domain, now_us),
        quality=_quality(stats, model, domain, worker, now_us),
        uncertainty=_uncertainty(stats, model, worker, now_us),
    )


def _speed(
    stats: Statistics, field: Field, model: str, domain: str, worker: str, log_size: float | None, now_us: int
) -> Measure:
    """A rate per second. Every level is a logarithm for *this* model's size."""
    fleet, by_model = stats.pool(field), stats.pool(field, "m", model)
    by_worker = stats.pool(field, "w", worker)
    pair, cell = stats.pool(field, "mw", model, worker), stats.pool(field, "c", model, domain, worker)
    y = math.log(PRIOR_AT_1GB[field]) - (log_size or 0.0)
    y = _lean(*_scaled(fleet, log_size), y, LEAN_FLEET)
    y = _lean(by_model.weight(), by_model.y, y, LEAN_SPEED)
    y = _lean(*_scaled(by_worker, log_size), y, LEAN_WORKER)
    y = _lean(pair.weight(), pair.y, y, LEAN_SPEED)
    y = _lean(cell.weight(), cell.y, y, LEAN_SPEED)
    levels: tuple[tuple[Level, _Pool], ...] = (
        ("cell", cell),
        ("model_worker", pair),
        ("worker", by_worker),
        ("model", by_model),
    )
    return _measure(math.exp(y), levels, now_us)


def _uncertainty(stats: Statistics, model: str, worker: str, now_us: int) -> float:
    """The standard deviation of ln(decode rate) (ROUTING.md, B3.2); evidence fades with its age, the rate does not."""
    by_worker, pair = stats.pool("decode", "w", worker), stats.pool("decode", "mw", model, worker)
    if not by_worker.n:
        return 1.0
    fresh = 0.5 ** ((by_worker.age_s(now_us) or 0.0) / CONFIDENCE_HALF_LIFE_S)
    return math.sqrt(0.25 / (by_worker.weight() * fresh + 1.0) + 0.04 / (pair.weight() * fresh + 1.0))


def _scaled(pool: _Pool, log_size: float | None) -> tuple[float, int]:
    """A pool of several models as (weight, Σ weight · logarithm for this size)."""
    if log_size is None or not pool.zw:
        return pool.weight(), pool.y
    return pool.zw / WEIGHT_ONE, pool.z - pool.zw * round(log_size * UNIT)


def _output(stats: Statistics, model: str, domain: str, now_us: int) -> Measure:
    pair, by_domain = stats.pool("output", "md", model, domain), stats.pool("output", "d", domain)
    value = _lean(*_others(by_domain, pair, UNIT), PRIOR_OUTPUT_TOKENS, LEAN_OUTPUT)
    value = _lean(*_others(pair, _EMPTY, UNIT), value, LEAN_OUTPUT)
    return _measure(value, (("model_domain", pair),), now_us)


def _quality(stats: Statistics, model: str, domain: str, worker: str, now_us: int) -> Measure:
    everything, by_model = stats.pool("quality"), stats.pool("quality", "m", model)
    pair, cell = stats.pool("quality", "md", model, domain), stats.pool("quality", "c", model, domain, worker)
    value = _lean(*_others(everything, by_model), PRIOR_QUALITY, LEAN_QUALITY_MODEL)
    value = _lean(*_others(by_model, pair), value, LEAN_QUALITY_MODEL)
    value = _lean(*_others(pair, cell), value, LEAN_QUALITY)
    value = _lean(*_others(cell, _EMPTY), value, LEAN_QUALITY)
    return _measure(value, (("cell", cell), ("model_domain", pair), ("model", by_model)), now_us)


def _others(pool: _Pool, child: _Pool, scale: int = 1) -> tuple[float, int]:
    """A parent without the child that leans on it: a single judgement must not be counted once per level."""
    return (pool.w - child.w) / WEIGHT_ONE, (pool.y - child.y) * scale


def _lean(n: float, total: int, parent: float, lean: float) -> float:
    """(Σ + lean · parent) / (n + lean), with Σ in weighted millionths."""
    return (total / (WEIGHT_ONE * UNIT) + lean * parent) / (n + lean)


def _measure(value: float, levels: tuple[tuple[Level, _Pool], ...], now_us: int) -> Measure:
    for level, pool in levels:
        if pool.n:
            return Measure(value=value, level=level, n=pool.n, age_s=pool.age_s(now_us))
    return Measure(value=value, level="prior", n=0, age_s=None)
