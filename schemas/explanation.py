"""What an effective value is made of, level by level, so that it can be checked by hand.

Answers "why 42 tokens/s?". It takes the very steps that ``schemas.statistics.effective`` takes and shows each: its own samples,
what they say, how many samples the level before is worth, and what comes out. It ends at the same number, to the last bit, and
must never compute one of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from schemas.blends import LEAN_QUALITY
from schemas.cells import Cell, Rates
from schemas.events import Measure
from schemas.opinions import Opinions, opinions
from schemas.pools import (
    FREE_LEAST_PERCENT,
    LEAN_LEARNED,
    PRIOR_OTHERS_WEIGHT,
    PRIOR_SLOWDOWN,
    Learned,
    Statistics,
)
from schemas.statistics import (
    WHOLE,
    Effective,
    Walk,
    effective,
    evidence_of_rate,
    lean,
    log_size_of,
    output_walk,
    quality_walk,
    seconds_of,
    speed_walk,
    use_known_walk,
)

MILLION = 1_000_000


class LevelPart(msgspec.Struct, frozen=True, kw_only=True):
    """One level. Of lengths and qualities it counts only what the finer levels do not.

    ``value`` is what its own samples say (None: it has none), ``weight`` how much they weigh, ``parent_worth`` how many samples
    the level before is worth, ``result`` what comes out: ``(weight · value + parent_worth · result before) / (weight +
    parent_worth)``, of logarithms where the mean is geometric."""

    level: str
    value: float | None
    weight: float
    parent_worth: float
    result: float
    n: int
    age_s: float | None


class FieldParts(msgspec.Struct, frozen=True, kw_only=True):
    """``prior`` is where it starts, ``measure`` where it ends: what the planner counts with. ``mean`` is ``arithmetic``, or
    ``geometric`` (of logarithms). ``levels`` come coarsest first. ``hundredths``: the end is rounded to these."""

    unit: str
    mean: str
    prior: float
    levels: tuple[LevelPart, ...]
    measure: Measure
    hundredths: bool = False


class AsRan(msgspec.Struct, frozen=True, kw_only=True):
    """How a cell's own rate becomes that of one stream on the free machine: ``observed · streams · others = alone`` (tokens/s).

    ``told`` is the share of the samples whose machine said how much others used it."""

    observed: float
    streams: float
    others: float
    alone: float
    told: float


class Confidence(msgspec.Struct, frozen=True, kw_only=True):
    """``deviation`` is the standard deviation of ln(decode rate), ``spread`` what that is as a share of the rate: 0.12 is ±12 %.
    The weights are of the machine's and the pair's samples, faded by their age; None where the machine has none."""

    deviation: float
    spread: float
    machine_weight: float | None
    pair_weight: float | None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """All of one (model, domain, worker). ``cell`` is None where nothing was measured of just this."""

    model: str
    domain: str
    worker: str
    cell: Cell | None
    fields: dict[str, FieldParts]
    as_ran: dict[str, AsRan]
    confidence: Confidence
    opinions: Opinions


def explain(
    stats: Statistics, model: str, domain: str, worker: str, *, model_bytes: int | None, now_us: int
) -> Explanation:
    """Of the same arguments as ``effective``. ``now_us`` only makes ages."""
    known = effective(stats, model, domain, worker, model_bytes=model_bytes, now_us=now_us)
    log_size = log_size_of(stats, model, model_bytes)
    learned = stats.learned(worker)
    cell = stats.cell(model, domain, worker)

    def speed(field: str, unit: str, write: Callable[[float], float]) -> FieldParts:
        walk = speed_walk(stats, field, model, domain, worker, log_size)  # type: ignore[arg-type]
        return _parts(walk, unit, getattr(known, field), now_us, write)

    fields = {
        "decode": speed("decode", "tok/s", math.exp),
        "prefill": speed("prefill", "tok/s", math.exp),
        "load": speed("load", "s", seconds_of),
        "output_tokens": _parts(output_walk(stats, model, domain), "tok", known.output_tokens, now_us),
        "quality": _parts(quality_walk(stats, model, domain, worker), "0-1", known.quality, now_us),
        "slowdown": _learned(stats, "slowdown", worker, PRIOR_SLOWDOWN, known.slowdown, now_us),
        "others_weight": _learned(stats, "others_weight", worker, PRIOR_OTHERS_WEIGHT, known.others_weight, now_us),
        "use_known": _parts(use_known_walk(stats, worker), "share", known.use_known, now_us),
    }
    return Explanation(
        model=model,
        domain=domain,
        worker=worker,
        cell=cell,
        fields=fields,
        as_ran={name: ran for name in ("decode", "prefill") if cell and (ran := as_ran(getattr(cell, name), learned))},
        confidence=_confidence(stats, known, model, worker, now_us),
        opinions=opinions(stats, model, domain),
    )


def spread_of(known: Effective) -> float:
    """How far off the speed may well be, as a share of it (one standard deviation): 0.12 is ±12 %."""
    return math.exp(known.uncertainty) - 1.0


def quality_spread(stats: Statistics, model: str, domain: str) -> float:
    """How far off the quality may well be, of 1 (one standard deviation). A judgement lies between 0 and 1, so that its
    variance is at most a quarter; the other domains count as much as they are worth."""
    judged = stats.pool("quality", "md", model, domain).weight()
    return 0.5 / math.sqrt(judged + LEAN_QUALITY)


def as_ran(rates: Rates, learned: Learned) -> AsRan | None:
    """See ``schemas.pools``, where a cell's rate is made; None without samples."""
    if not (rates.wtok > 0 and rates.wus > 0):
        return None
    slowdown, others_weight = learned
    tokens = 100 * rates.wtok + slowdown * rates.wtok_more
    free_us = max(100 * rates.wus - others_weight * (rates.wus - rates.wfree_us), FREE_LEAST_PERCENT * rates.wus)
    return AsRan(
        observed=rates.wtok * MILLION / rates.wus,
        streams=tokens / (100 * rates.wtok),
        others=100 * rates.wus / free_us,
        alone=tokens * MILLION / free_us,
        told=rates.w_told / rates.w if rates.w else 0.0,
    )


def _parts(
    walk: Walk, unit: str, measure: Measure, now_us: int, write: Callable[[float], float] | None = None
) -> FieldParts:
    said = write or _as_it_is
    value, levels = walk.prior, []
    inner = [step[1].n for step in walk.steps[1:]] + [0]
    for (name, pool, weight, total, worth), finer_n in zip(walk.steps, inner, strict=True):
        value = lean(weight, total, value, worth)
        own = said(total / WHOLE / weight) if weight > 0 else None
        levels.append(
            LevelPart(
                level=name,
                value=own,
                weight=weight,
                parent_worth=worth,
                result=said(value),
                n=pool.n if write else pool.n - finer_n,
                age_s=pool.age_s(now_us),
            )
        )
    mean = "arithmetic" if write is None else "geometric"
    return FieldParts(unit=unit, mean=mean, prior=said(walk.prior), levels=tuple(levels), measure=measure)


def _learned(stats: Statistics, field: str, worker: str, prior: float, measure: Measure, now_us: int) -> FieldParts:
    pool = stats.pool(field, worker)
    walk = Walk(prior, (("worker", pool, pool.weight(), pool.y, LEAN_LEARNED),))
    return msgspec.structs.replace(_parts(walk, "share", measure, now_us), hundredths=True)


def _confidence(stats: Statistics, known: Effective, model: str, worker: str, now_us: int) -> Confidence:
    machine, pair = evidence_of_rate(stats, model, worker, now_us) or (None, None)
    return Confidence(deviation=known.uncertainty, spread=spread_of(known), machine_weight=machine, pair_weight=pair)


def _as_it_is(value: float) -> float:
    return value
