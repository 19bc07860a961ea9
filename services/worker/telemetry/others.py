"""How much of this machine does somebody else use?

Measured only while no attempt of ours runs, and only after our own load has left the readings; the last value is kept with its
age. Never measured is None with a reason, never "nobody". Pure: readings and instants in, a value out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from schemas.events import Gpu

GPU_QUIET_S = 2.0
"""NVML averages utilisation over up to a second."""
PRESSURE_QUIET_S = 30.0
"""PSI's avg10 still holds 5 % of a load that ended 30 s ago."""


@dataclass
class Others:
    """``ours`` follows our own attempts (none before the start), ``observe`` takes each reading."""

    use: float | None = None
    measured_at: float | None = None
    reason: str = "not measured yet: no quiet moment so far"
    _idle_since: float | None = -math.inf

    def ours(self, running: int, now: float) -> None:
        """How many attempts of ours run from now on."""
        if running:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now

    def observe(self, gpus: tuple[Gpu, ...] | None, cpu_pressure: float | None, now: float) -> None:
        """A GPU machine is judged by its busiest GPU, another one by its CPU pressure."""
        if gpus:
            uses = [gpu.use for gpu in gpus]
            value = None if any(use is None for use in uses) else max(use for use in uses if use is not None)
            quiet_s, missing = GPU_QUIET_S, "the GPU's utilisation is not readable"
        else:
            value, quiet_s, missing = cpu_pressure, PRESSURE_QUIET_S, "the CPU's pressure is not readable"
        if value is None:
            if self.use is None:
                self.reason = missing
            return
        if self._idle_since is None or now - self._idle_since < quiet_s:
            return
        self.use, self.measured_at, self.reason = value, now, ""

    def age_s(self, now: float) -> float | None:
        return None if self.measured_at is None else max(0.0, now - self.measured_at)
