"""A decision service's verdict as one vote among others: each model's probability, weighted by its confidence.

The verdict came with the task (``task.submitted``); this file asks nobody. A verdict is never an order: a model that cannot
answer is no contender, and then its probability counts for nobody (case 26).
"""

from __future__ import annotations

from collections.abc import Sequence

from services.router.policy.plugin import Case, Contender, Vote, abstain


def vote(case: Case, contenders: Sequence[Contender]) -> Vote:
    """Every worker of a model gets its model's probability, not a share of it."""
    verdict = case.verdict
    if verdict is None:
        return abstain("no decision service was asked")
    if verdict.reason is not None and not verdict.probabilities:
        return abstain(f"the decision service gave no verdict: {verdict.reason}")
    scores = tuple(_share(verdict.probabilities.get(c.model)) for c in contenders)
    confidence = _share(verdict.confidence)
    if not any(scores) or confidence == 0.0:
        return abstain("the decision service was for none of those who can answer")
    best = max(verdict.probabilities, key=lambda model: (verdict.probabilities[model], model))
    words = f"{verdict.by} gives {best} {100 * verdict.probabilities[best]:.0f} %, confidence {100 * confidence:.0f} %"
    return Vote(scores, words, strength=confidence)


def _share(value: float | None) -> float:
    """In [0, 1]; what is unknown, or no number, counts nothing."""
    return min(max(value, 0.0), 1.0) if value is not None and value == value else 0.0
