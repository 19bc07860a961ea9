"""From the finest cells to effective values: one lookup for router, worker, projector and simulator.

Answers "what should we expect of this model on this worker?", field by field: each field falls back on its own, and says
which level it came from, how many samples that is and how old they are. Speed belongs to the machine, quality to the model.
Sample counts decide how much a level leans on its parent and how uncertain it is, never the score (ROUTING.md, B3.2).

    decode, prefill, load:  cell -> (model, worker) -> worker, scaled by size -> model -> fleet and prior
    output tokens:          (model, domain) -> domain -> prior
    quality:                cell -> (model, domain) -> model -> family -> all and prior
    slowdown, others_weight, use_known: worker -> prior
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, cast

from schemas.blends import LEAN_QUALITY, Blend, one_word
from schemas.cells import Cell, CellKey, Rates, Sums, fold, key_of
from schemas.events import Level, Measure
from schemas.families import family_of
from schemas.pools import EMPTY, GB, Field, Found, Pool, Statistics
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
"""How many samples a parent is worth (ROUTING.md, B3.2, B3.3)."""

LEAN_CHILD = 1.0
"""To what its children say, each as one word, what the level above says is one more (``schemas.blends``)."""

WHOLE = WEIGHT_ONE * UNIT
"""One, in weighted millionths."""

CONFIDENCE_HALF_LIFE_S = 14 * 86_400.0
UNCERTAIN, UNCERTAIN_WORKER, UNCERTAIN_PAIR = 1.0, 0.25, 0.04
"""The standard deviation where nothing is known, and the variances of one worker and of one pair (ROUTING.md, B3.2)."""

FOUND_MOST = 10_000
"""Lookups remembered until the next cell: a domain may be any client's word."""

Step = tuple[str, Pool, float, int, float]
"""One level of a lookup: its name, its samples, their weight, Σ weight · value in weighted millionths, and how many samples its
parent is worth. A plain tuple: some twenty of them are made for each of the planner's lookups."""

COARSEST = ("fleet", "domain")
"""Levels that are too far from a pair for its number to be called after them."""


class Walk(NamedTuple):
    """From a guess to the finest level; each step leans on the one before (``lean``). ``schemas.explanation`` shows the same."""

    prior: float
    steps: tuple[Step, ...]


def effective(
    stats: Statistics, model: str, domain: str, worker: str, *, model_bytes: int | None, now_us: int
) -> Effective:
    """Expected values, each with its finest level that has data, its n and its age. ``now_us`` only makes ages.

    Where the model's size is unknown, its typical size elsewhere stands in; without one nothing is scaled.
    """
    stats.settle()
    key = (model, domain, worker, model_bytes)
    found = stats.found.get(key)
    if found is None:
        if len(stats.found) >= FOUND_MOST:
            stats.found.clear()
        found = stats.found[key] = _found(stats, *key)
    decode, prefill, load, output, quality, slowdown, others, known = [_measure(*one, now_us) for one in found]
    return Effective(
        decode=decode,
        prefill=prefill,
        load=load,
        output_tokens=output,
        quality=quality,
        slowdown=slowdown,
        others_weight=others,
        use_known=known,
        uncertainty=_uncertainty(stats, model, worker, now_us),
    )


def _found(stats: Statistics, model: str, domain: str, worker: str, model_bytes: int | None) -> tuple[Found, ...]:
    """All that a lookup comes to but its ages, in the order of ``Effective``'s fields."""
    log_size = log_size_of(stats, model, model_bytes)
    return (
        _walked(speed_walk(stats, "decode", model, domain, worker, log_size), math.exp),
        _walked(speed_walk(stats, "prefill", model, domain, worker, log_size), math.exp),
        _walked(speed_walk(stats, "load", model, domain, worker, log_size), seconds_of),
        _walked(output_walk(stats, model, domain)),
        _walked(quality_walk(stats, model, domain, worker)),
        _learned(stats, "slowdown", worker),
        _learned(stats, "others_weight", worker),
        _walked(use_known_walk(stats, worker)),
    )


def log_size_of(stats: Statistics, model: str, model_bytes: int | None) -> float | None:
    """ln of the model's size in GB: the size known there, else its typical one elsewhere, else None."""
    size = model_bytes or stats.typical_bytes(model)
    return math.log(size / GB) if size else None


def seconds_of(log_rate: float) -> float:
    """Of a load, whose rate is loads a second."""
    return 1.0 / (math.exp(log_rate) or 1.0)


def speed_walk(stats: Statistics, field: Field, model: str, domain: str, worker: str, log_size: float | None) -> Walk:
    """Logarithms of a rate per second, each for *this* model's size."""
    fleet, by_model = stats.pool(field), stats.pool(field, "m", model)
    by_worker = stats.pool(field, "w", worker)
    pair, cell = stats.pool(field, "mw", model, worker), stats.pool(field, "c", model, domain, worker)
    return Walk(
        math.log(PRIOR_AT_1GB[field]) - (log_size or 0.0),
        (
            ("fleet", fleet, *_scaled(fleet, log_size), LEAN_FLEET),
            ("model", by_model, by_model.weight(), by_model.y, LEAN_SPEED),
            ("worker", by_worker, *_scaled(by_worker, log_size), LEAN_WORKER),
            ("model_worker", pair, pair.weight(), pair.y, LEAN_SPEED),
            ("cell", cell, cell.weight(), cell.y, LEAN_SPEED),
        ),
    )


def _learned(stats: Statistics, field: Literal["slowdown", "others_weight"], worker: str) -> Found:
    """As it was applied to the worker's rates."""
    slowdown, others_weight = stats.learned(worker)
    value = (slowdown if field == "slowdown" else others_weight) / 100
    return value, "worker", stats.pool(field, worker)


def use_known_walk(stats: Statistics, worker: str) -> Walk:
    """The share of the worker's speed samples whose machine said how much others used it; one such sample is presumed."""
    pool = stats.pool("use_known", worker)
    return Walk(1.0, (("worker", pool, pool.weight(), pool.y, 1.0),))


def evidence_of_rate(stats: Statistics, model: str, worker: str, now_us: int) -> tuple[float, float] | None:
    """The weights of the worker's and of the pair's decode samples, faded by their age; None where the worker has none."""
    by_worker, pair = stats.pool("decode", "w", worker), stats.pool("decode", "mw", model, worker)
    if not by_worker.n:
        return None
    fresh = 0.5 ** ((by_worker.age_s(now_us) or 0.0) / CONFIDENCE_HALF_LIFE_S)
    return by_worker.weight() * fresh, pair.weight() * fresh


def _uncertainty(stats: Statistics, model: str, worker: str, now_us: int) -> float:
    """The standard deviation of ln(decode rate) (ROUTING.md, B3.2); evidence fades with its age, the rate does not."""
    evidence = evidence_of_rate(stats, model, worker, now_us)
    if evidence is None:
        return UNCERTAIN
    by_worker, pair = evidence
    return math.sqrt(UNCERTAIN_WORKER / (by_worker + 1.0) + UNCERTAIN_PAIR / (pair + 1.0))


def _scaled(pool: Pool, log_size: float | None) -> tuple[float, int]:
    """A pool of several models as (weight, Σ weight · logarithm for this size)."""
    if log_size is None or not pool.zw:
        return pool.weight(), pool.y
    return pool.zw / WEIGHT_ONE, pool.z - pool.zw * round(log_size * UNIT)


def output_walk(stats: Statistics, model: str, domain: str) -> Walk:
    pair, by_domain = stats.pool("output", "md", model, domain), stats.pool("output", "d", domain)
    return Walk(
        PRIOR_OUTPUT_TOKENS,
        (
            ("domain", by_domain, *_others(by_domain, pair, UNIT), LEAN_OUTPUT),
            ("model_domain", pair, *_others(pair, EMPTY, UNIT), LEAN_OUTPUT),
        ),
    )


def quality_walk(stats: Statistics, model: str, domain: str, worker: str) -> Walk:
    """What other models and other domains say counts as one word each; nearer, every judgement counts."""
    family, by_model = ("quality", "f", family_of(model)), ("quality", "m", model)
    own, blends = stats.pool(*by_model), stats.blends
    pair, cell = stats.pool("quality", "md", model, domain), stats.pool("quality", "c", model, domain, worker)
    others, kin = blends.without(("quality",), blends.of(family)), blends.without(family, one_word(own))
    elsewhere = blends.without(by_model, one_word(pair))
    return Walk(
        PRIOR_QUALITY,
        (
            ("fleet", stats.pool("quality"), *_weighed(others), LEAN_CHILD),
            ("family", stats.pool(*family), *_weighed(kin), LEAN_CHILD),
            ("model", own, *_weighed(elsewhere), LEAN_CHILD),
            ("model_domain", pair, *_others(pair, cell), LEAN_QUALITY),
            ("cell", cell, *_others(cell, EMPTY), LEAN_QUALITY),
        ),
    )


def _weighed(blend: Blend) -> tuple[float, int]:
    return blend[0] / WEIGHT_ONE, blend[1]


def _others(pool: Pool, child: Pool, scale: int = 1) -> tuple[float, int]:
    """A parent without the child that leans on it: a single judgement must not be counted once per level."""
    return (pool.w - child.w) / WEIGHT_ONE, (pool.y - child.y) * scale


def lean(weight: float, total: int, parent: float, worth: float) -> float:
    """(Σ + worth · parent) / (weight + worth), with Σ in weighted millionths."""
    return (total / WHOLE + worth * parent) / (weight + worth)


def _walked(walk: Walk, unit: Callable[[float], float] | None = None) -> Found:
    """Where a walk ends, and the finest level on it that has data."""
    value = walk.prior
    level, finest = "prior", EMPTY
    for name, pool, weight_, total, worth in walk.steps:
        value = lean(weight_, total, value, worth)
        if pool.n and name not in COARSEST:
            level, finest = name, pool
    return value if unit is None else unit(value), level, finest


def _measure(value: float, level: str, pool: Pool, now_us: int) -> Measure:
    if not pool.n:
        return Measure(value=value, level="prior", n=0, age_s=None)
    return Measure(value=value, level=cast(Level, level), n=pool.n, age_s=pool.age_s(now_us))
