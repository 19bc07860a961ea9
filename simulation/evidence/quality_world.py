"""What answers are really worth, what people say of them, and how a judge picks: the truth that scorers have to find.

Answers "what is true, and what can be seen of it?". Five models and six domains from the start; half-way a sixth model joins that
is better than they are. Everything random is drawn before the first task comes, so every scorer meets the same luck. Nothing
here knows a scorer.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

DOMAINS = ("chat", "code", "japanese", "maths", "summarise", "translation")
OLD = ("alder", "birch", "cedar", "larch", "maple")
NEW = "rowan"
"""Six families: nobody is a relative of anybody."""
MODELS = (*OLD, NEW)
TASKS = 1200
JOINS_AT = 600

LEAST, MOST = 0.40, 0.70
"""Between these a model's general worth lies."""
SPECIALITY = 0.12
"""Sigma of what a domain adds to a model or takes from it."""
NEW_IS_BETTER = 0.08
"""The newcomer's general worth above the best of the old ones'."""
LABEL_NOISE = 0.10
"""The share of thumbs that point the wrong way."""


@dataclass(frozen=True)
class Task:
    """``asked``: the user says something of the answer."""

    n: int
    domain: str
    asked: bool
    mood: float
    slip: bool


class QualityWorld:
    """One seed. ``share`` of the tasks get a thumb, of which one in ten is wrong."""

    def __init__(self, seed: int, *, share: float = 0.30, tasks: int = TASKS, joins_at: int = JOINS_AT) -> None:
        rng = random.Random(f"quality.{seed}")
        self.seed, self.joins_at = seed, joins_at
        general = {model: rng.uniform(LEAST, MOST) for model in OLD}
        general[NEW] = max(general.values()) + NEW_IS_BETTER
        self.worth = {(m, d): _clip(general[m] + rng.gauss(0.0, SPECIALITY)) for m in MODELS for d in DOMAINS}
        self.tasks = tuple(
            Task(
                n=n, domain=rng.choice(DOMAINS), asked=rng.random() < share, mood=rng.random(),
                slip=rng.random() < LABEL_NOISE,
            )
            for n in range(tasks)
        )  # fmt: skip

    def models(self, n: int) -> tuple[str, ...]:
        """Who is there when the n-th task comes."""
        return MODELS if n >= self.joins_at else OLD

    def regret(self, task: Task, model: str) -> float:
        """Points of 100 below the best model of that moment."""
        best = max(self.worth[m, task.domain] for m in self.models(task.n))
        return 100.0 * (best - self.worth[model, task.domain])

    def thumb(self, task: Task, model: str) -> float | None:
        """1 or 0, None where the user says nothing: up as often as the answer is good, and now and then by mistake."""
        if not task.asked:
            return None
        up = task.mood < self.worth[model, task.domain]
        return float(up != task.slip)


def _clip(value: float) -> float:
    return min(max(value, 0.05), 0.98)
