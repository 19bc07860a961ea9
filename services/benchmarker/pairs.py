"""Which two models are worth comparing next, on which prompt?

Answers "where does one more verdict teach most?": the debt's model against the one whose strength is nearest and which it has met
least, at first on prompts that neither was judged on: many verdicts on one answer are one. Pure and deterministic: a draw is
decided by a seed that is told.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence

import msgspec

from services.benchmarker.panel import Panel, Seat

DIFFERENT_LEAST = 3
"""A model's first verdicts rest on so many prompts; after that, answers that were given already are held against new ones."""
QUALITY_LEAST = 0.02
"""Strengths are odds of qualities; nobody is infinitely good."""


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt to compare on, by its suite and its name there."""

    suite: str
    name: str


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """``met`` is how often the two were compared; ``seed`` settled what was equal."""

    own: Seat
    peer: Seat
    topic: Topic
    seed: int
    met: int = 0


Met = Mapping[tuple[str, str, str], int]
"""How often two models met on a prompt: by both names, in order, and the prompt's."""


def met_key(one: str, other: str, prompt: str) -> tuple[str, str, str]:
    return min(one, other), max(one, other), prompt


def ranked(
    model: str, worker: str | None, panel: Panel, topics: Sequence[Topic], met: Met, seed: int
) -> tuple[Pairing, ...] | str:
    """The pairings that are left for ``model``, the one worth most first, or why there is none. ``worker`` is where the debt
    wants it asked. Two models meet on a prompt once: the same texts would only be judged again."""
    owns = [seat for seat in panel.seats_of(model) if worker in (None, seat.worker)] or list(panel.seats_of(model))
    if not owns:
        return f"{model} cannot be asked now"
    if not topics:
        return "there is no prompt that only a judge can weigh"
    own, rivals = owns[0], sorted({seat.model for seat in panel.seats} - {model})
    if not rivals:
        return f"there is no other model to compare {model} with"

    def worth(peer: Seat) -> float:
        return _unsure(own.quality, peer.quality) / (1 + _times(met, model, peer.model))

    found = []
    for peer in sorted(
        (panel.seats_of(rival)[0] for rival in rivals), key=lambda peer: (-worth(peer), _drawn(seed, peer.model))
    ):
        left = [topic for topic in topics if not met.get(met_key(model, peer.model, topic.name))]
        if left:
            topic = min(
                left,
                key=lambda topic: (
                    *_judged_on(met, (model, peer.model), topic.name),
                    _drawn(seed, topic.suite, topic.name),
                ),
            )
            met_before = _times(met, model, peer.model)
            found.append(Pairing(own=own, peer=peer, topic=topic, seed=seed, met=met_before))
    return tuple(found) or f"{model} has met every other model on every prompt that only a judge can weigh"


def _unsure(one: float | None, other: float | None) -> float:
    """p · (1 − p) of a win (Bradley–Terry): what a verdict is expected to teach. Unknown strengths are a draw."""
    p = 1.0 / (1.0 + math.exp(_strength(other) - _strength(one)))
    return p * (1.0 - p)


def _strength(quality: float | None) -> float:
    q = min(max(0.5 if quality is None else quality, QUALITY_LEAST), 1.0 - QUALITY_LEAST)
    return math.log(q / (1.0 - q))


def _times(met: Met, model: str, rival: str) -> int:
    one, other = min(model, rival), max(model, rival)
    return sum(n for (first, second, _), n in met.items() if (first, second) == (one, other))


def _judged_on(met: Met, models: tuple[str, str], prompt: str) -> tuple[int, int]:
    """How often those two were judged on it that still need different prompts; then, an answer that is there costs nothing."""
    times, needy = [], []
    for model in models:
        on = [(name, n) for (one, other, name), n in met.items() if model in (one, other)]
        times.append(sum(n for name, n in on if name == prompt))
        if len({name for name, _ in on}) < DIFFERENT_LEAST:
            needy.append(times[-1])
    return max(needy, default=0), -sum(n > 0 for n in times)


def _drawn(seed: int, *words: str) -> bytes:
    """A place in the order that only the seed and the names decide, the same on any machine."""
    return hashlib.sha256("\0".join((str(seed), *words)).encode()).digest()
