"""Which models do people use, for what, and how much? A fold over completed real tasks.

Answers "is this cell worth measuring?". Pure; old use fades, so that what nobody asks any more is measured no more.
"""

from __future__ import annotations

import math
from collections import defaultdict

import msgspec

US = 1_000_000
HALF_LIFE_S = 7 * 86_400.0
IN_USE_LEAST = 0.05
"""A single task counts for a month: 2^(-30/7)."""

ANY_DOMAIN = "general"
DOMAINS = frozenset({ANY_DOMAIN, "code", "japanese", "maths", "summarise", "translation", "unknown", "writing"})
"""Those with a suite, and what the router calls a prompt that shows nothing."""
OWN_LEAST = 2.0
"""Above that many tasks lately a made-up label is measured for itself: a misspelt one is asked for once or twice."""
PAIRS_MOST = 1_000
"""Clients may call a domain what they like; the least used is forgotten first."""


class Used(msgspec.Struct, kw_only=True):
    """``weight`` tasks, as of ``at_us``; ``prompt`` is their mean prompt in tokens."""

    weight: float = 0.0
    at_us: int = 0
    prompt: float = 0.0

    def now(self, now_us: int) -> float:
        return self.weight * math.exp2(-max(0, now_us - self.at_us) / US / HALF_LIFE_S)


class Use(msgspec.Struct, kw_only=True):
    """By (model, domain)."""

    pairs: dict[tuple[str, str], Used] = {}

    def ran(self, model: str, domain: str, prompt_tokens: int | None, at_us: int) -> None:
        """A real task was completed."""
        if (model, domain) not in self.pairs and len(self.pairs) >= PAIRS_MOST:
            del self.pairs[min(self.pairs, key=lambda pair: self.pairs[pair].now(at_us))]
        used = self.pairs.setdefault((model, domain), Used())
        before = used.now(at_us)
        used.weight, used.at_us = before + 1.0, max(at_us, used.at_us)
        if prompt_tokens is not None:
            used.prompt = (used.prompt * before + prompt_tokens) / used.weight

    def in_use(self, now_us: int) -> dict[tuple[str, str], float]:
        """(model, domain) -> its share of all tasks, by falling share. What is hardly ever asked under a name of its own counts
        as ``ANY_DOMAIN``."""
        weights = {pair: weight for pair, used in self.pairs.items() if (weight := used.now(now_us)) >= IN_USE_LEAST}
        of_domain: dict[str, float] = defaultdict(float)
        for (_, domain), weight in weights.items():
            of_domain[domain] += weight
        found: dict[tuple[str, str], float] = defaultdict(float)
        for (model, domain), weight in weights.items():
            stands = domain in DOMAINS or of_domain[domain] > OWN_LEAST
            found[model, domain if stands else ANY_DOMAIN] += weight
        total = sum(found.values())
        return {pair: found[pair] / total for pair in sorted(found, key=lambda pair: (-found[pair], pair))}

    def domains(self, model: str, now_us: int) -> tuple[str, ...]:
        """Those that the model is asked in, the most frequent first."""
        return tuple(domain for name, domain in self.in_use(now_us) if name == model)

    def prompt_of(self, model: str, domain: str) -> float | None:
        used = self.pairs.get((model, domain))
        return used.prompt or None if used is not None else None
