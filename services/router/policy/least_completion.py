"""Our default rule as a vote: the least predicted completion less what the quality is worth (docs/scoring.md).

A route with this plugin alone is the planner's own choice; beside others it is one vote of several.
"""

from __future__ import annotations

from collections.abc import Sequence

from services.router.policy.halving import halved
from services.router.policy.plugin import Case, Contender, Vote, abstain


def vote(case: Case, contenders: Sequence[Contender]) -> Vote:
    if not contenders:
        return abstain("nobody is there to compare")
    best = min(contenders, key=lambda c: (c.cost_s, c.model, c.worker))
    return Vote(
        halved([c.cost_s for c in contenders]), f"{best.model} on {best.worker} costs the least, {best.cost_s:.1f} s"
    )
