"""Time as the router can trust it: its own pulses, heard back through the server.

Answers "how long has it been silent?". A router that was paused, or whose server froze, heard nothing, and that must not look
like everybody else's silence: each beat adds at most twice its interval (PROTOCOL.md: otherwise a router paused for 8 s declared
6 healthy attempts lost; with this 0). Leases, deadlines and credit ages are all on this clock.
"""

from __future__ import annotations

from dataclasses import dataclass

PULSE_S = 0.25
"""Interval of the pulses: four a second make a 2 s start deadline exact to an eighth, at 0.1 % of a core."""


@dataclass
class HeardClock:
    """Seconds of heard time since the start; moves only with ``beat``."""

    interval_s: float = PULSE_S
    seconds: float = 0.0
    last: float | None = None

    def beat(self, monotonic: float) -> float:
        """A pulse of ours came back at this reading of the local monotonic clock."""
        if self.last is not None:
            self.seconds += min(max(monotonic - self.last, 0.0), 2 * self.interval_s)
        self.last = monotonic
        return self.seconds
