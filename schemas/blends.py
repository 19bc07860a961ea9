"""What do a level's children say together, each as one word?

Answers "what is a model like, going by its other domains, by its family, by all?". A child that was judged often counts as one, a
seldom judged one as less: twelve judgements of one model say a lot about it and little about another, so that a model that nobody
judged is never thought better than the best of those that were. Integers, so that taking a child out leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from schemas.shares import PoolKey
from schemas.weights import WEIGHT_ONE

LEAN_QUALITY = 6.0
"""How many judgements a level is worth to the one below it (ROUTING.md, B3.6); with so many a child is half known."""

NOTHING = (0, 0)
Blend = tuple[int, int]
"""Σ weight and Σ weight · value in millionths, the weights as in ``schemas.weights``."""


class Judged(Protocol):
    """A pool: ``w`` is Σ weight, ``y`` is Σ weight · value in millionths."""

    w: int
    y: int


class Blends:
    """Which pools stand under which, and what they come to; kept until one of them changes."""

    def __init__(self, pool: Callable[[PoolKey], Judged]) -> None:
        self._pool = pool
        self._under: dict[PoolKey, set[PoolKey]] = {}
        self._known: dict[PoolKey, Blend] = {}

    def changed(self, parent: PoolKey, child: PoolKey) -> None:
        self._under.setdefault(parent, set()).add(child)
        self._known.pop(parent, None)

    def of(self, parent: PoolKey) -> Blend:
        found = self._known.get(parent)
        if found is None:
            words = [one_word(self._pool(child)) for child in self._under.get(parent, ())]
            found = self._known[parent] = (sum(w for w, _ in words), sum(y for _, y in words))
        return found

    def without(self, parent: PoolKey, gone: Blend) -> Blend:
        w, y = self.of(parent)
        return w - gone[0], y - gone[1]


def one_word(pool: Judged) -> Blend:
    """n judgements count n / (n + 6) of one."""
    if pool.w <= 0:
        return NOTHING
    weight = pool.w / WEIGHT_ONE
    w = round(WEIGHT_ONE * weight / (weight + LEAN_QUALITY))
    return w, w * (pool.y // pool.w)
