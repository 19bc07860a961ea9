"""How many attempts ran here while this one did?

A burst's first attempt starts alone and runs beside all others, so the number at its start teaches a wrong slowdown. This is the
mean over its run, to the nearest whole. Pure.
"""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")


class Streams(Generic[K]):
    """Times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._area = self._at = 0.0
        self._began: dict[K, tuple[float, float]] = {}

    def begin(self, key: K, now: float) -> None:
        self._reach(now)
        self._began[key] = (now, self._area)

    def end(self, key: K, now: float) -> int:
        """How many ran while ``key`` did, itself included."""
        self._reach(now)
        began, area = self._began.pop(key)
        return max(round((self._area - area) / (now - began)), 1) if now > began else len(self._began) + 1

    def _reach(self, now: float) -> None:
        self._area += (now - self._at) * len(self._began)
        self._at = now
