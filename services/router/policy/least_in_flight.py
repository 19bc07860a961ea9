"""Least in-flight: 1/(1 + attempts that the router has running there). Blind to speed (ROUTING.md B1).

The count is the router's own, of its live attempts in the log, so it cannot leak or fall below 0 (case 16).
"""

from __future__ import annotations

from collections.abc import Sequence

from services.router.policy.plugin import Case, Contender, Vote, abstain


def vote(case: Case, contenders: Sequence[Contender]) -> Vote:
    if not contenders:
        return abstain("nobody is there to count for")
    least = min(c.in_flight for c in contenders)
    return Vote(tuple(1.0 / (1.0 + max(c.in_flight, 0)) for c in contenders), f"the least in flight is {least}")
