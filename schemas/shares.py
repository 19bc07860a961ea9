"""What one cell gives to the levels above it.

Answers "what does this cell say about its model, its worker, all of them?", as integers that ``schemas.pools`` adds up and takes
out again without a trace. A worker's rates are those of one stream on the free machine (ROUTING.md, B3.4).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal

from schemas.cells import Cell, Rates, key_of
from schemas.families import family_of
from schemas.samples import UNIT

Field = Literal["decode", "prefill", "load", "output", "quality"]
PoolKey = tuple[str, ...]
Learned = tuple[int, int]
"""In hundredths, because finer steps would be noise that moves all rates: slowdown by a further stream, weight of others' use."""

GB = 1e9

PRIOR_SLOWDOWN = 1.0
PRIOR_OTHERS_WEIGHT = 1.0
SLOWDOWN_MOST = 1.5
OTHERS_WEIGHT_MOST = 2.0
LEAN_LEARNED = 2.0
"""How many samples of the rarer kind the prior is worth."""

TELLING_USE = 0.5
"""Others' use at which a sample tells as much about it as one that ran alone: below, noise is divided by a small number."""

UNKNOWN: Learned = (round(100 * PRIOR_SLOWDOWN), round(100 * PRIOR_OTHERS_WEIGHT))
FREE_LEAST_PERCENT = 25
"""Of the measured time, whatever others took: as ``schemas.prediction.FREE_LEAST``."""


class Share:
    """What one cell gives to each pool of one field."""

    __slots__ = ("at_us", "n", "pools", "w", "y", "z", "zw")

    def __init__(self, pools: tuple[PoolKey, ...], n: int, w: int, y: int, at_us: int | None) -> None:
        self.pools, self.n, self.w, self.y, self.at_us = pools, n, w, y, at_us or 0
        self.zw = self.z = 0


def shares(cell: Cell, learned: Learned) -> Iterator[Share]:
    model, domain, worker = key_of(cell)
    if worker is not None:
        yield from speeds(cell, worker, learned)
        for name, n, w, value in (("slowdown", *slowdown(cell)), ("others_weight", *others_weight(cell))):
            if w:
                yield Share(((name, worker),), n, w, w * round(value * UNIT), cell.speed_at_us)
        if cell.decode.w:
            told = cell.decode.w_told * UNIT
            yield Share((("use_known", worker),), cell.decode.n, cell.decode.w, told, cell.speed_at_us)
    pools: tuple[PoolKey, ...]
    if cell.output.w:
        pools = (("output", "md", model, domain), ("output", "d", domain))
        yield Share(pools, cell.output.n, cell.output.w, cell.output.wx, cell.speed_at_us)
    if cell.quality.w:
        pools = (("quality", "c", model, domain, worker or ""), *quality_pools(model, domain))
        yield Share(pools, cell.quality.n, cell.quality.w // UNIT, cell.quality.wx // UNIT, cell.quality_at_us)


def quality_pools(model: str, domain: str) -> tuple[PoolKey, ...]:
    """Of a judgement that is about the model, wherever it ran."""
    by_family = ("quality", "f", family_of(model))
    return (("quality", "md", model, domain), ("quality", "m", model), by_family, ("quality",))


def speeds(cell: Cell, worker: str, learned: Learned) -> Iterator[Share]:
    speeds: tuple[tuple[Field, int, int, float | None], ...] = (
        ("decode", cell.decode.n, cell.decode.w, _log_rate(cell.decode, learned)),
        ("prefill", cell.prefill.n, cell.prefill.w, _log_rate(cell.prefill, learned)),
        ("load", cell.load.n, cell.load.w, _log(cell.load.w * UNIT, cell.load.wx)),
    )
    for field, n, w, y in speeds:
        if y is not None:
            yield _speed_share(cell, worker, field, n, w, y)


def _speed_share(cell: Cell, worker: str, field: Field, n: int, w: int, y: float) -> Share:
    model, domain = cell.model, cell.domain
    pools = (
        (field, "c", model, domain, worker),
        (field, "mw", model, worker),
        (field, "w", worker),
        (field, "m", model),
        (field,),
    )
    share = Share(pools, n, w, w * round(y * UNIT), cell.speed_at_us)
    if cell.model_bytes:
        share.zw, share.z = w, w * round((y + math.log(cell.model_bytes / GB)) * UNIT)
    return share


def _log_rate(rates: Rates, learned: Learned) -> float | None:
    """ln(tokens per second) of one stream on the free machine.

    Time is taken to be t1 · tokens · (1 + β · further streams) / (1 − γ · others' use), so t1 is a ratio of sums that are
    linear in both. Samples that all ran in eight streams give a rate that is right in eight, whatever β is.
    """
    beta, gamma = learned
    tokens = 100 * rates.wtok + beta * rates.wtok_more
    free_us = 100 * rates.wus - gamma * (rates.wus - rates.wfree_us)
    return _log(tokens * UNIT, max(free_us, FREE_LEAST_PERCENT * rates.wus))


def slowdown(cell: Cell) -> tuple[int, int, float]:
    """(n, weight, β): how much each further stream adds to a token's time, by the time of those that ran alone."""
    alone, shared = cell.alone, cell.shared
    if not (alone.wtok and alone.wus and shared.wx):
        return 0, 0, PRIOR_SLOWDOWN
    value = (shared.wus * alone.wtok - shared.wtok * alone.wus) / (shared.wx * alone.wus)
    return shared.n, min(alone.w, shared.w), min(max(value, 0.0), SLOWDOWN_MOST)


def others_weight(cell: Cell) -> tuple[int, int, float]:
    """(n, weight, γ): how much of others' use comes off our speed, by the speed beside nobody known."""
    alone, busy = cell.alone, cell.busy
    if not (alone.wtok and alone.wus and busy.wx):
        return 0, 0, PRIOR_OTHERS_WEIGHT
    value = (busy.wus * alone.wtok - busy.wtok * alone.wus) / (busy.wx * alone.wtok)
    telling = min(1.0, (busy.wx / busy.wus / TELLING_USE) ** 2)
    return busy.n, int(min(alone.w, busy.w) * telling), min(max(value, 0.0), OTHERS_WEIGHT_MOST)


def _log(numerator: int, denominator: int) -> float | None:
    """ln of a ratio of sums, None where either is missing."""
    return math.log(numerator / denominator) if numerator > 0 and denominator > 0 else None
