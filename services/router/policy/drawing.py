"""Whose turn is it? Target weights and round robin, from the counts in the log alone.

The target that is furthest behind its share is next (smooth weighted round robin), so a share is met within one request at any
moment, a restart goes on where it was, and a retry, which is no new decision, does not count.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence

from services.router.policy.routes import Target


def next_target(targets: Sequence[Target], counts: Mapping[str, int]) -> Target:
    """``counts`` are the decisions so far among just these targets with just these weights; equals go in the file's order."""
    weights = shares(targets)
    made = sum(counts.get(target.name, 0) for target in targets) + 1
    return max(targets, key=lambda t: round(weights[t.name] * made - counts.get(t.name, 0), 9))


def shares(targets: Sequence[Target]) -> dict[str, float]:
    """Of 1; equal where nobody has a weight. However many workers a target has, its share is the same."""
    whole = sum(target.weight for target in targets)
    return {t.name: t.weight / whole if whole > 0 else 1.0 / len(targets) for t in targets}


def stand_in(targets: Sequence[Target], seed: int) -> Target:
    """For a task whose drawn target can no longer answer: by lot with the weights, the same each time it is asked, and without
    being counted."""
    weights = shares(targets)
    return min(targets, key=lambda t: (-math.log(_uniform(seed, t.name)) / weights[t.name], t.name))


def _uniform(seed: int, name: str) -> float:
    """In (0, 1]."""
    digest = hashlib.blake2b(f"{seed}\n{name}".encode(), digest_size=8).digest()
    return (int.from_bytes(digest) + 1) / 2**64
