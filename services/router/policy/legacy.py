"""The published formula of the system before this one, ``0.4 speed + 0.4 domain + 0.2 load``, and the same on honest numbers.

``legacy_score`` is shared with the simulation's baseline ``legacy_as_published``, so that the two differ only in what they are
fed: that one's numbers are keyed by (model, domain), and silence counts as idle; here each worker has its own numbers, seconds
are scored against a fixed bound, and what is unknown counts as the worst.
"""

from __future__ import annotations

from collections.abc import Sequence

from services.router.policy.plugin import Case, Contender, Vote, abstain

SPEED, DOMAIN, LOAD = 0.4, 0.4, 0.2
TYPICAL_S = 10.0
"""A task of so many seconds has half of the speed's points."""


def legacy_score(speed: float, domain: float, load: float) -> float:
    """All three in [0, 1], larger is better; ``load`` is the free share of the machine."""
    return SPEED * speed + DOMAIN * domain + LOAD * load


def vote(case: Case, contenders: Sequence[Contender]) -> Vote:
    if not contenders:
        return abstain("nobody is there to compare")
    scores = tuple(legacy_score(speed(c), min(max(c.quality, 0.0), 1.0), load(c)) for c in contenders)
    best = max(zip(scores, contenders, strict=True), key=lambda each: (each[0], each[1].model, each[1].worker))
    return Vote(scores, f"{best[1].model} on {best[1].worker} has {best[0]:.2f} of 1 point")


def speed(contender: Contender) -> float:
    """Of the whole answer, on this worker."""
    seconds = contender.load_s + contender.prefill_s + contender.decode_s + contender.sharing_s
    return TYPICAL_S / (TYPICAL_S + seconds)


def load(contender: Contender) -> float:
    """The free share of its slots; a wait that is not known, and a load that is not fresh, count as none free."""
    if contender.wait_s is None or not contender.fresh:
        return 0.0
    return 1.0 - min(max(contender.in_flight, 0) / max(contender.slots, 1), 1.0)
