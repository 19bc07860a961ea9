"""From the finest cells to effective values: one lookup for router, worker, projector and simulator.

Answers "what should we expect of this model on this worker?", field by field: each field falls back on its own, and says
which level it came from, how many samples that is and how old they are. Speed belongs to the machine, quality to the model.
Sample counts decide how much a level leans on its parent and how uncertain it is, never the score (ROUTING.md, B3.2).

    decode, prefill, load:  cell -> (model, worker) -> worker, scaled by size -> model -> fleet and prior
    output tokens:          (model, domain) -> domain -> prior
    quality:                cell -> (model, domain) -> model -> all and prior
    slowdown, others_weight, use_known: worker -> prior
"""

from __future__ import annotations

import math
from typing import Literal

from schemas.cells import Cell, CellKey, Rates, Sums, fold, key_of
from schemas.events import Level, Measure
from schemas.pools import EMPTY, GB, Field, Pool, Statistics
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
from schemas.weights import WEIGHT_ONE, weight

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


def effective(
    stats: Statistics, model: str, domain: str, worker: str, *, model_bytes: int | None, now_us: int
) -> Effective:
    """Expected values, each with its finest level that has data, its n and its age. ``now_us`` only makes ages.

    Where the model's size is unknown, its typical size elsewhere stands in; without one nothing is scaled.
    """
    stats.settle()
    size = model_bytes or stats.typical_bytes(model)
    log_size = math.log(size / GB) if size else None
    loads = _speed(stats, "load", model, domain, worker, log_size, now_us)
    return Effective(
        decode=_speed(stats, "decode", model, domain, worker, log_size, now_us),
        prefill=_speed(stats, "prefill", model, domain, worker, log_size, now_us),
        load=Measure(value=1.0 / (loads.value or 1.0), level=loads.level, n=loads.n, age_s=loads.age_s),
        output_tokens=_output(stats, model, domain, now_us),
        quality=_quality(stats, model, domain, worker, now_us),
        slowdown=_learned(stats, "slowdown", worker, now_us),
        others_weight=_learned(stats, "others_weight", worker, now_us),
        use_known=_use_known(stats, worker, now_us),
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
    levels: tuple[tuple[Level, Pool], ...] = (
        ("cell", cell),
        ("model_worker", pair),
        ("worker", by_worker),
        ("model", by_model),
    )
    return _measure(math.exp(y), levels, now_us)


def _learned(stats: Statistics, field: Literal["slowdown", "others_weight"], worker: str, now_us: int) -> Measure:
    """As it was applied to the worker's rates."""
    slowdown, others_weight = stats.learned(worker)
    value = (slowdown if field == "slowdown" else others_weight) / 100
    return _measure(value, (("worker", stats.pool(field, worker)),), now_us)


def _use_known(stats: Statistics, worker: str, now_us: int) -> Measure:
    """The share of the worker's speed samples whose machine said how much others used it; one such sample is presumed."""
    pool = stats.pool("use_known", worker)
    value = _lean(pool.weight(), pool.y, 1.0, 1.0)
    return _measure(value, (("worker", pool),), now_us)


def _uncertainty(stats: Statistics, model: str, worker: str, now_us: int) -> float:
    """The standard deviation of ln(decode rate) (ROUTING.md, B3.2); evidence fades with its age, the rate does not."""
    by_worker, pair = stats.pool("decode", "w", worker), stats.pool("decode", "mw", model, worker)
    if not by_worker.n:
        return 1.0
    fresh = 0.5 ** ((by_worker.age_s(now_us) or 0.0) / CONFIDENCE_HALF_LIFE_S)
    return math.sqrt(0.25 / (by_worker.weight() * fresh + 1.0) + 0.04 / (pair.weight() * fresh + 1.0))


def _scaled(pool: Pool, log_size: float | None) -> tuple[float, int]:
    """A pool of several models as (weight, Σ weight · logarithm for this size)."""
    if log_size is None or not pool.zw:
        return pool.weight(), pool.y
    return pool.zw / WEIGHT_ONE, pool.z - pool.zw * round(log_size * UNIT)


def _output(stats: Statistics, model: str, domain: str, now_us: int) -> Measure:
    pair, by_domain = stats.pool("output", "md", model, domain), stats.pool("output", "d", domain)
    value = _lean(*_others(by_domain, pair, UNIT), PRIOR_OUTPUT_TOKENS, LEAN_OUTPUT)
    value = _lean(*_others(pair, EMPTY, UNIT), value, LEAN_OUTPUT)
    return _measure(value, (("model_domain", pair),), now_us)


def _quality(stats: Statistics, model: str, domain: str, worker: str, now_us: int) -> Measure:
    everything, by_model = stats.pool("quality"), stats.pool("quality", "m", model)
    pair, cell = stats.pool("quality", "md", model, domain), stats.pool("quality", "c", model, domain, worker)
    value = _lean(*_others(everything, by_model), PRIOR_QUALITY, LEAN_QUALITY_MODEL)
    value = _lean(*_others(by_model, pair), value, LEAN_QUALITY_MODEL)
    value = _lean(*_others(pair, cell), value, LEAN_QUALITY)
    value = _lean(*_others(cell, EMPTY), value, LEAN_QUALITY)
    return _measure(value, (("cell", cell), ("model_domain", pair), ("model", by_model)), now_us)


def _others(pool: Pool, child: Pool, scale: int = 1) -> tuple[float, int]:
    """A parent without the child that leans on it: a single judgement must not be counted once per level."""
    return (pool.w - child.w) / WEIGHT_ONE, (pool.y - child.y) * scale


def _lean(n: float, total: int, parent: float, lean: float) -> float:
    """(Σ + lean · parent) / (n + lean), with Σ in weighted millionths."""
    return (total / (WEIGHT_ONE * UNIT) + lean * parent) / (n + lean)


def _measure(value: float, levels: tuple[tuple[Level, Pool], ...], now_us: int) -> Measure:
    for level, pool in levels:
        if pool.n:
            return Measure(value=value, level=level, n=pool.n, age_s=pool.age_s(now_us))
    return Measure(value=value, level="prior", n=0, age_s=None)
