"""Time, handed to whoever needs it.

Answers "how long, and what time is it?". Durations come from ``monotonic``, which also runs while the machine sleeps;
``unix`` is for display and server timestamps only and must never be subtracted from another machine's.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    def monotonic(self) -> float:
        """Seconds since some fixed moment of this boot, suspend included."""
        ...

    def unix(self) -> float:
        """Seconds since 1970, UTC."""
        ...


class SystemClock:
    """CLOCK_BOOTTIME where the system has it (Linux), else the ordinary monotonic clock."""

    def __init__(self) -> None:
        self._clock_id: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def monotonic(self) -> float:
        return time.clock_gettime(self._clock_id)

    def unix(self) -> float:
        return time.time()


class FakeClock:
    """A clock that moves only when told; ``start`` is its Unix time."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._start = start
        self._elapsed = 0.0

    def monotonic(self) -> float:
        return self._elapsed

    def unix(self) -> float:
        return self._start + self._elapsed

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"a clock does not run backwards; asked to advance by {seconds} s")
        self._elapsed += seconds
