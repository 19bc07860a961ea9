"""The order of candidates: those with a fresh load first, then the least cost, equals by the recorded seed.

Answers "who comes first?". It never looks at names, except mixed with the seed: no worker is favoured for its id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from schemas.events import Candidate


def order(candidates: Iterable[Candidate], seed: int) -> list[Candidate]:
    """Best first. The result depends on the set of candidates and the seed alone, not on their order."""
    return sorted(candidates, key=lambda c: (not c.fresh, c.cost_s, tie_break(seed, c.model, c.worker)))


def tie_break(seed: int, model: str, worker: str) -> bytes:
    """A rank among equals that any reader of the log can compute again: BLAKE2b of ``seed``, model and worker."""
    return hashlib.blake2b(f"{seed}\n{model}\n{worker}".encode(), digest_size=8).digest()
