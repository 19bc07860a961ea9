"""Adding up votes: ``total = Σ weight x score / Σ scores`` (cases/lb-policies.md), the largest wins, equals by the seed.

Answers "whom do a route's plugins prefer?". The L1 norm makes a plugin's votes add up to its weight however many contend: this
is GPUStack's definition, and the one place where a score depends on who else is there (STYLE.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from services.router.policy.picker import tie_break
from services.router.policy.plugin import Case, Contender
from services.router.policy.plugins import PLUGINS

EXACT = 9
"""Decimals up to which two totals are the same: 1/3 is reached by more than one way of rounding."""


class Tally(msgspec.Struct, frozen=True):
    """``votes`` by plugin, weighted and normalised, and ``totals``, in the order of the contenders; ``words`` by plugin.
    Without a vote at all ``totals`` are all 0."""

    totals: tuple[float, ...]
    votes: tuple[dict[str, float], ...]
    words: dict[str, str]

    @property
    def is_silent(self) -> bool:
        """Every plugin abstained."""
        return not any(self.votes)


def tally(case: Case, contenders: Sequence[Contender], weights: Mapping[str, float]) -> Tally:
    """``weights`` are by plugin; a plugin without weight is not heard."""
    votes: list[dict[str, float]] = [{} for _ in contenders]
    words: dict[str, str] = {}
    for name in sorted(weights):
        if weights[name] <= 0.0:
            continue
        vote = PLUGINS[name].vote(case, contenders)
        words[name] = vote.words
        scores = vote.scores
        if scores is None or not (whole := math.fsum(scores)) > 0.0:
            continue
        for mine, score in zip(votes, scores, strict=True):
            mine[name] = weights[name] * vote.strength * score / whole
    return Tally(tuple(sum(mine.values()) for mine in votes), tuple(votes), words)


def best_of(counted: Tally, contenders: Sequence[Contender], seed: int) -> int | None:
    """The index of the preferred contender; a fresh load goes before an unknown one. None where nobody voted or contends."""
    if counted.is_silent or not contenders:
        return None
    return min(range(len(contenders)), key=lambda n: _rank(contenders[n], counted.totals[n], seed))


def _rank(contender: Contender, total: float, seed: int) -> tuple[bool, float, bytes]:
    return (not contender.fresh, -round(total, EXACT), tie_break(seed, contender.model, contender.worker))
