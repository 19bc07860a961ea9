"""What can be had for a task now: each (model, machine) pair with the parts of its cost (ROUTING.md B3.4 and B3.6).

Answers "what would each pair cost?": seconds until the answer is whole, plus N · W(m), the seconds that this model takes from the
tasks behind, less what its quality is worth. Values only; the planner chooses.
"""

from __future__ import annotations

from typing import NamedTuple

from services.router.dispatch.completion import Parts


class Offer(NamedTuple):
    """One pair for one task in one pass. ``free``: the machine has a credit now; ``in_flight``: the attempts there, placed ones
    included; ``priority``: its pull's; ``tie`` breaks equal costs."""

    model: str
    worker: str
    parts: Parts
    others_s: float
    quality: float
    cost_s: float
    free: bool
    fresh: bool
    in_flight: int
    slots: int
    priority: int

    @property
    def wait_s(self) -> float:
        return self.parts.wait_s

    @property
    def load_s(self) -> float:
        return self.parts.load_s

    @property
    def prefill_s(self) -> float:
        return self.parts.prefill_s

    @property
    def decode_s(self) -> float:
        return self.parts.decode_s

    @property
    def sharing_s(self) -> float:
        return self.parts.sharing_s

    @property
    def total_s(self) -> float:
        return self.parts.total_s
