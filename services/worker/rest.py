"""How long should a backend rest after it let an attempt down?

A server that hangs keeps answering questions about itself, so its slots would look free and swallow one task after another:
it rests, and the next attempt goes to another machine. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

REST_S = 5.0
"""Longer than the router's first backoff of 1 s, so that the next attempt is made elsewhere."""
REST_MOST_S = 60.0
RESTING = frozenset({"stall", "oom"})
"""A dead server is seen by asking it; a busy one has said so; a refused request or a client's deadline is no fault of it."""


@dataclass
class Rest:
    """Failures in a row; a success forgets them."""

    failures: int = 0

    def after(self, failure: str) -> float:
        """Seconds to rest, 0 for none: 5, 15, 45, then 60."""
        if failure not in RESTING:
            return 0.0
        self.failures += 1
        return min(REST_S * 3.0 ** (self.failures - 1), REST_MOST_S)

    def succeeded(self) -> None:
        self.failures = 0
