"""Session affinity as GPUStack defines it: a session's owner scores 1, the next 1/2, then 1/4, by rendezvous hashing.

It knows nothing of speed or of what is cached where; ``saved_prefill`` does. Source: cases/lb-policies.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from services.router.policy.plugin import Case, Contender, Vote, abstain


def vote(case: Case, contenders: Sequence[Contender]) -> Vote:
    """Each target that leaves or joins moves only its own sessions."""
    if not case.session or not contenders:
        return abstain("the task belongs to no session")
    keys = [(c.model, c.worker) for c in contenders]
    ranked = sorted(keys, key=lambda key: rank(case.session or "", *key))
    scores = {key: 0.5**place for place, key in enumerate(ranked)}
    return Vote(tuple(scores[key] for key in keys), f"{ranked[0][0]} on {ranked[0][1]} owns the session")


def rank(session: str, model: str, worker: str) -> bytes:
    """The smallest is the owner's. BLAKE2b, because a hash that mixes badly loads targets unevenly."""
    return hashlib.blake2b(f"{session}\n{model}\n{worker}".encode(), digest_size=16).digest()
