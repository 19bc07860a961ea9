"""One seed of learning quality: every scorer in the same world, task after task.

Answers "how many points does one lose by not knowing better, before and after a better model joins?".
"""

from __future__ import annotations

from simulation.evidence.quality_ours import Ours, Shadowed
from simulation.evidence.quality_rivals import Rival, RowFallback, SampleCount
from simulation.evidence.quality_world import DOMAINS, JOINS_AT, NEW, TASKS, QualityWorld

Numbers = dict[str, float]
LEARNERS: tuple[type[Rival] | type[Ours], ...] = (SampleCount, RowFallback, Ours, Shadowed)
BIN = 100
"""Tasks of one point of the curve."""


def quality(seed: int, *, share: float = 0.30, tasks: int = TASKS, joins_at: int = JOINS_AT) -> Numbers:
    """Regret in points of 100 per task by scorer: ``first`` until the newcomer, ``after``, and along the way."""
    found: Numbers = {}
    for made in LEARNERS:
        world = QualityWorld(seed, share=share, tasks=tasks, joins_at=joins_at)
        learner = made(seed)
        regrets = [_one(world, learner, n) for n in range(tasks)]
        found[f"{made.name} first"] = _mean(regrets[:joins_at])
        found[f"{made.name} after"] = _mean(regrets[joins_at:])
        for at in range(0, tasks, BIN):
            found[f"{made.name} @{at + BIN}"] = _mean(regrets[at : at + BIN])
        if isinstance(learner, Shadowed):
            found |= {"shadow runs": float(learner.fleet.shadows), "verdicts of runs": float(learner.verdicts)}
            found["newcomer runs"] = float(min(learner.evaluated(NEW, domain) for domain in DOMAINS))
            learner.runner.close()
    return found


def _one(world: QualityWorld, learner: Rival | Ours, n: int) -> float:
    task = world.tasks[n]
    model = learner.choose(world.models(n), task.domain)
    thumb = world.thumb(task, model)
    if thumb is not None:
        learner.thumb(model, task.domain, thumb)
    if isinstance(learner, Shadowed):
        learner.ran(world, n, model)
    return world.regret(task, model)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)
