"""How good is a model by its grades, how sure is that, and which of two is better? Pure arithmetic on grades in [0, 1].

A prompt is what was drawn, not an answer: several answers to one prompt count as one grade, their mean, so that asking again
makes nothing surer. Never says "better" where chance alone would have said it more often than one time in twenty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

LEVEL = 0.95
Z = 1.959964
"""The normal quantile of ``LEVEL``."""
DRAWS = 3999
"""With it the fortieth part, 100 draws on each side, is a whole number; more would only smooth the ends."""
_MASK = (1 << 64) - 1

Word = Literal["a better", "b better", "undecided"]


class Interval(NamedTuple):
    low: float
    high: float


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """``difference`` is a's mean less b's over the ``n`` prompts that both have, with its interval. Decided where that leaves 0
    out; then both say the same."""

    verdict: Word
    difference: float
    low: float
    high: float
    n: int


def by_prompt(graded: Iterable[tuple[str, float]]) -> dict[str, float]:
    """The mean grade of each prompt."""
    found: dict[str, list[float]] = {}
    for prompt, value in graded:
        found.setdefault(prompt, []).append(value)
    return {prompt: math.fsum(values) / len(values) for prompt, values in found.items()}


def mean(grades: Mapping[str, float]) -> float | None:
    return math.fsum(grades.values()) / len(grades) if grades else None


def wilson(value: float, n: int) -> Interval:
    """Wilson's score interval for a mean of ``n`` prompts; for part credit it is wider than needed, never narrower."""
    if n < 1:
        return Interval(0.0, 1.0)
    middle = (value + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z / (1 + Z * Z / n) * math.sqrt(max(0.0, value * (1 - value)) / n + Z * Z / (4 * n * n))
    return Interval(max(0.0, min(value, middle - half)), min(1.0, max(value, middle + half)))


def compare(a: Mapping[str, float], b: Mapping[str, float], *, seed: int, draws: int = DRAWS) -> Comparison:
    """Paired by prompt; prompts that only one has are left out.

    The interval is that of Hartigan's typical values (JASA 64, 1969): means of random subsets of the differences, which is the
    sign-flip test turned round. If the labels say nothing, it leaves out 0 at most one time in twenty, whatever the grades look
    like. So fewer than six prompts never decide.
    """
    differences = [a[prompt] - b[prompt] for prompt in sorted(a.keys() & b.keys())]
    n = len(differences)
    if n == 0:
        return Comparison(verdict="undecided", difference=0.0, low=-1.0, high=1.0, n=0)
    lows, highs = [], []
    subsets, least = _subsets(n, seed, draws)
    for chosen in subsets:
        picked = [difference for at, difference in enumerate(differences) if chosen >> at & 1]
        # The empty subset stands for the labels as they are, which count against every claim.
        lows.append(math.fsum(picked) / len(picked) if picked else -math.inf)
        highs.append(lows[-1] if picked else math.inf)
    low, high = sorted(lows)[least], sorted(highs)[-1 - least]
    return Comparison(
        verdict="a better" if low > 0 else "b better" if high < 0 else "undecided",
        difference=math.fsum(differences) / n,
        low=max(-1.0, low),
        high=min(1.0, high),
        n=n,
    )


def _subsets(n: int, seed: int, draws: int) -> tuple[Iterable[int], int]:
    """All bit sets of ``n`` where they are few, else ``draws`` random ones; and how many means may lie beyond each end."""
    tail = (1 - LEVEL) / 2 + 1e-12
    if 1 << n <= draws:
        return range(1 << n), int(tail * (1 << n))
    return _drawn(n, seed, draws), int(tail * (draws + 1)) - 1


def _drawn(n: int, seed: int, draws: int) -> Iterator[int]:
    """The same for the same seed, on any machine (splitmix64)."""
    state = seed & _MASK
    for _ in range(draws):
        bits = 0
        for _ in range(-(-n // 64)):
            state = (state + 0x9E3779B97F4A7C15) & _MASK
            mixed = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
            mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
            bits = bits << 64 | (mixed ^ (mixed >> 31))
        yield bits & ((1 << n) - 1)
