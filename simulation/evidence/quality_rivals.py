"""The rules that quality is learned by elsewhere: by sample count, by whole rows.

Answers "what are we compared with?". None of these is the product's code. Each is told thumbs only, as the product is where
nobody judges.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

NEUTRAL = 0.5
THICK = 20
"""Samples at which the evidence counts half."""


class Rival:
    """Chooses a model for a domain and is told what people said of it."""

    name = ""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"{self.name}.{seed}")
        self.told: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)

    def choose(self, models: Sequence[str], domain: str) -> str:
        """Of equals by lot."""
        scores = {model: self.score(model, domain) for model in models}
        best = max(scores.values())
        return self.random.choice([model for model, score in scores.items() if score == best])

    def score(self, model: str, domain: str) -> float:
        raise NotImplementedError

    def thumb(self, model: str, domain: str, value: float) -> None:
        self.told[model, domain].append(value)
        self.told[model,].append(value)


class SampleCount(Rival):
    """The legacy evidence score: the mean of a row, times how thick its evidence is. A new row has next to none."""

    name = "sample_count"

    def score(self, model: str, domain: str) -> float:
        seen = self.told[model, domain]
        return (_mean(seen) if seen else NEUTRAL) * (len(seen) + 1) / (len(seen) + 1 + THICK)


class RowFallback(Rival):
    """The row of model and domain where there is one, else the model's, else neutral: all or nothing."""

    name = "row_fallback"

    def score(self, model: str, domain: str) -> float:
        seen = self.told[model, domain] or self.told[model,]
        return _mean(seen) if seen else NEUTRAL


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
