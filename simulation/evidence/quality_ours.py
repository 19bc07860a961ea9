"""The product's own learning of quality: its facts, its folds, its statistics, its choice of what to judge, and its verdicts.

Answers "what would the product have chosen?". Everything it knows came in as ``quality.judged``, and what it makes of that is
``schemas.statistics``'. What is modelled is what people and judges say (``quality_world``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from schemas.events import Pick, QualityJudged
from schemas.judging import Side, pair_events
from schemas.statistics import CellKey, Sample, Statistics, effective, fold, key_of, sample_of
from simulation.evidence.quality_world import DOMAINS, QualityWorld

WORKER = "w1"
JUDGE = "judge"
CHARS = 400
TASK_S = 60.0
"""From one task to the next."""


class Ours:
    """Hears people only."""

    name = "ours_thumbs"

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
        self.count(event)

    def count(self, event: QualityJudged) -> None:
        sample = sample_of(event, self.seq, self.now_us)
        assert sample is not None
        cell = self.samples.setdefault(key_of(sample), [])
        cell.append(sample)
        self.statistics.put(fold(cell))


class Shadowed(Ours):
    """And has pairs judged on idle machines, at most one for each four tasks."""

    name = "ours"

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.pairs = 0
        self.judged_n: Counter[tuple[str, str]] = Counter()
        self.cells: set[tuple[str, str]] = set()

    def least_judged(self) -> int:
        return min(self.judged_n[cell] for cell in self.cells)

    def idle(self, world: QualityWorld, n: int) -> None:
        """A moment between two tasks."""
        if n % 4:
            return
        self.cells = {(m, d) for m in world.models(n) for d in DOMAINS}
        wanting = [(self.judged_n[cell], *cell) for cell in self.cells if self.judged_n[cell] < 3]
        if not wanting:
            return
        _, model, domain = min(wanting)
        peer = max(sorted(m for m in world.models(n) if m != model), key=lambda m: self.quality(m, domain))
        self.pair(world, model, peer, domain)

    def pair(self, world: QualityWorld, own: str, peer: str, domain: str) -> None:
        """Both answer, a judge sees them in both orders, and the two facts are counted."""
        worth, others = world.answer(own, domain), world.answer(peer, domain)
        picks: tuple[Pick, Pick] = (
            "own" if world.says_first(worth, others) else "peer",
            "peer" if world.says_first(others, worth) else "own",
        )
        self.pairs += 1
        sides = [Side(model=m, task=f"p{self.pairs}.{m}", chars=CHARS, digest=m) for m in (own, peer)]
        for event in pair_events(
            *sides, picks, pair=f"p{self.pairs}", domain=domain, judge=JUDGE, judge_digest=JUDGE, weight=1.0, kin=False,
            at=0.0, by="sim",
        ):  # fmt: skip
            self.seq += 1
            self.count(event)
        self.judged_n.update({(own, domain): 1, (peer, domain): 1})
