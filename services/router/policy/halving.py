"""Seconds to a score that keeps its edge among many: 1 for the least, half of it for each second more.

A score such as 1/(1 + s) is levelled by the L1 norm of twenty contenders; this one is not, and no bad newcomer changes it.
"""

from __future__ import annotations

from collections.abc import Sequence

HALF_S = 1.0
"""About what a person notices while waiting for an answer."""


def halved(seconds: Sequence[float]) -> tuple[float, ...]:
    """In [0, 1]; the largest is 1."""
    least = min(seconds, default=0.0)
    return tuple(0.5 ** ((value - least) / HALF_S) for value in seconds)
