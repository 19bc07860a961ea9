"""What is a model's quality in a domain judged by?

Answers "who said so, and of what?": how many judgements came from where, what those of answers by themselves say, and what the
pairs say in which its answers were held against another model's. Together they are the samples of the level ``model_domain`` of
``schemas.statistics``. Pure; it shows and never weighs anew.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from schemas.cells import Cell, Sources
from schemas.pools import Statistics
from schemas.samples import UNIT
from schemas.strengths import games
from schemas.weights import WEIGHT_ONE


class Rival(msgspec.Struct, frozen=True, kw_only=True):
    """Another model that it was held against: in ``n`` pairs, of which it won the share ``won``, a tie being half."""

    model: str
    n: int
    weight: float
    won: float


class Paired(msgspec.Struct, frozen=True, kw_only=True):
    """``strength`` is Bradley and Terry's, 0 for the mean model of the domain; ``value`` is the quality that it counts as."""

    n: int
    weight: float
    strength: float
    value: float
    rivals: tuple[Rival, ...]


class ByItself(msgspec.Struct, frozen=True, kw_only=True):
    """Answers that were judged alone: a check, a thumb, a signal. ``value`` None: there are none."""

    weight: float
    value: float | None


class Opinions(msgspec.Struct, frozen=True, kw_only=True):
    """Of one model in one domain, on all machines. ``pairs`` None: it was held against nobody."""

    sources: Sources
    by_itself: ByItself
    pairs: Paired | None


def opinions(stats: Statistics, model: str, domain: str) -> Opinions:
    """Adds up to the pool of (model, domain)."""
    everything = stats.pool("quality", "md", model, domain)
    cells = [cell for cell in stats.cells() if cell.domain == domain]
    paired = _paired(stats, cells, model, domain)
    given = stats.in_pairs(model, domain)
    w, y = (everything.w, everything.y) if given is None else (everything.w - given.w, everything.y - given.y)
    return Opinions(
        sources=_sources(cells, model),
        by_itself=ByItself(weight=w / WEIGHT_ONE, value=y / (w * UNIT) if w > 0 else None),
        pairs=paired,
    )


def _paired(stats: Statistics, cells: list[Cell], model: str, domain: str) -> Paired | None:
    given = stats.in_pairs(model, domain)
    standing = next((found for found in stats.standings(domain) if found.model == model), None)
    if given is None or standing is None:
        return None
    rivals = []
    for game in games((cell.model, tally) for cell in cells for tally in cell.pairs):
        if model in (game.one, game.other):
            other, won = (game.other, game.won) if game.one == model else (game.one, 1.0 - game.won)
            rivals.append(Rival(model=other, n=game.n, weight=game.w / WEIGHT_ONE, won=won))
    return Paired(
        n=standing.n,
        weight=given.w / WEIGHT_ONE,
        strength=standing.strength,
        value=given.y / (given.w * UNIT),
        rivals=tuple(rivals),
    )


def _sources(cells: list[Cell], model: str) -> Sources:
    total: Counter[str] = Counter()
    for cell in cells:
        if cell.model == model:
            total.update(msgspec.structs.asdict(cell.sources))
    return Sources(**total)
