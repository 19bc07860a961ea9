"""Which two models are worth comparing next, on which prompt?

Answers "where does one more verdict teach most?": the debt's model against the one whose strength is nearest and which it has met
least, on the prompt that they have met on least. Pure and deterministic: a draw is decided by a seed that is told.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from services.benchmarker.panel import Panel, Seat

JUDGED_ENOUGH = 3
REAL_PER_SHADOW = 4
"""ROUTING.md B2: until each (model, domain) in use has 3 judged samples, at most one shadow per four real tasks."""
QUALITY_LEAST = 0.02
"""Strengths are odds of qualities; nobody is infinitely good."""


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt to compare on: of a suite, or (``own``) of a user, by its task."""

    suite: str
    name: str
    own: bool = False


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """``seed`` settled what was equal; ``why`` says what made it worth most."""

    own: Seat
    peer: Seat
    prompt: Prompt
    seed: int
    why: str


Met = Mapping[tuple[str, str, str], int]
"""How often two models met on a prompt: by both names, in order, and the prompt's."""


def met_key(one: str, other: str, prompt: str) -> tuple[str, str, str]:
    return min(one, other), max(one, other), prompt


def may_shadow(real: int, shadows: int) -> bool:
    """Whether one more shadow keeps to one per four real tasks."""
    return (shadows + 1) * REAL_PER_SHADOW <= real


def is_judged(samples: float) -> bool:
    return samples >= JUDGED_ENOUGH


def choose(
    model: str, worker: str | None, panel: Panel, prompts: Sequence[Prompt], met: Met, seed: int
) -> Pairing | str:
    """The pairing worth most for ``model``, or why there is none. ``worker`` is where the debt wants it asked."""
    owns = [seat for seat in panel.seats_of(model) if worker in (None, seat.worker)] or list(panel.seats_of(model))
    if not owns:
        return f"{model} cannot be asked now"
    if not prompts:
        return "there is no prompt to compare on"
    rivals = {seat.model: seat for seat in reversed(panel.seats) if seat.model != model}
    if not rivals:
        return f"there is no other model to compare {model} with"
    own = owns[0]

    def worth(rival: str) -> float:
        return _unsure(own.quality, panel.seats_of(rival)[0].quality) / (1 + _met(met, model, rival))

    best = min(sorted(rivals), key=lambda rival: (-worth(rival), _drawn(seed, rival)))
    peer = panel.seats_of(best)[0]
    prompt = min(prompts, key=lambda p: (met.get(met_key(model, best, p.name), 0), _drawn(seed, p.suite, p.name)))
    times = _met(met, model, best)
    words = (
        f"nearest in strength of {len(rivals)}, met {times} times before" if len(rivals) > 1 else "the only other model"
    )
    return Pairing(own=own, peer=peer, prompt=prompt, seed=seed, why=words)


def count_met(pairs: Iterable[tuple[str, str, str]]) -> dict[tuple[str, str, str], int]:
    """From (model, peer, prompt) of each judged pair."""
    counts: dict[tuple[str, str, str], int] = {}
    for model, peer, prompt in pairs:
        key = met_key(model, peer, prompt)
        counts[key] = counts.get(key, 0) + 1
    return counts


def _unsure(one: float | None, other: float | None) -> float:
    """p · (1 − p) of a win (Bradley–Terry): what a verdict is expected to teach. Unknown strengths are a draw."""
    p = 1.0 / (1.0 + math.exp(_strength(other) - _strength(one)))
    return p * (1.0 - p)


def _strength(quality: float | None) -> float:
    q = min(max(0.5 if quality is None else quality, QUALITY_LEAST), 1.0 - QUALITY_LEAST)
    return math.log(q / (1.0 - q))


def _met(met: Met, model: str, rival: str) -> int:
    one, other = min(model, rival), max(model, rival)
    return sum(n for (first, second, _), n in met.items() if (first, second) == (one, other))


def _drawn(seed: int, *words: str) -> bytes:
    """A place in the order that only the seed and the names decide, the same on any machine."""
    return hashlib.sha256("\0".join((str(seed), *words)).encode()).digest()
