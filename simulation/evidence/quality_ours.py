"""The product's own learning of quality: its facts, its folds, its statistics, its choice of what to judge, and its verdicts.

Answers "what would the product have chosen?". Everything it knows came in as ``quality.judged``, and what it makes of that is
``schemas.statistics``'. What is modelled is what people and judges say (``quality_world``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schemas.events import QualityJudged
from schemas.statistics import CellKey, Sample, Statistics, effective, fold, key_of, sample_of

WORKER = "w1"
TASK_S = 60.0
"""From one task to the next."""


class Ours:
    """``shadow`` adds judged pairs on idle machines; without it, only people are heard."""

    name = "ours"

    def __init__(self, seed: int) -> None:
        self.statistics = Statistics()
        self.samples: dict[CellKey, list[Sample]] = {}
        self.seq = 0

    def choose(self, models: Sequence[str], domain: str) -> str:
        """The best expectation; of equals the first by name, as the planner."""
        return max(sorted(models), key=lambda model: self.quality(model, domain))

    def quality(self, model: str, domain: str) -> float:
        found = effective(self.statistics, model, domain, WORKER, model_bytes=None, now_us=self.now_us).quality.value
        return found if found is not None else 0.0

    def thumb(self, model: str, domain: str, value: float) -> None:
        self.judged(model, domain, source="thumb", value=value, worker=WORKER, tasks=(f"t{self.seq}",), client="c1")

    @property
    def now_us(self) -> int:
        return int(self.seq * TASK_S * 1e6)

    def judged(self, model: str, domain: str, **fields: Any) -> None:
        """One more fact, as the projector would count it."""
        self.seq += 1
        event = QualityJudged(id=f"e{self.seq}", at=0.0, by="sim", model=model, domain=domain, digest=model, **fields)
        sample = sample_of(event, self.seq, self.now_us)
        assert sample is not None
        cell = self.samples.setdefault(key_of(sample), [])
        cell.append(sample)
        self.statistics.put(fold(cell))
