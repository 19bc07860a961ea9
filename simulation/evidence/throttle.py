"""A machine is throttled to a quarter of its speed, and later let go: after how many runs does the product know?

Answers that with the product's samples, folds and expectations; how long a run takes is the physics'. Nothing is planned here:
the machine is given its runs, so that what is measured is the rule for drift and not who gets work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from schemas.events import TaskCompleted, Times, Tokens
from schemas.statistics import (
    CellKey,
    Effective,
    Sample,
    Statistics,
    effective,
    fold,
    key_of,
    sample_of,
    service_seconds,
)
from simulation.fleet import instances
from simulation.fleet.physics import DOMAINS, MODELS, Instance, Job, Machine

DESK = "desk"
DOMAIN = DOMAINS[0]
"""Whose expectations are looked at."""
BEFORE = 100
"""Runs of each machine before."""
THROTTLED = 40
"""Runs of the throttled machine until it is let go."""
MOST = 60
"""After so many runs without effect we stop counting."""
SLOWER = 4.0
BETWEEN_S = 30.0


@dataclass(frozen=True)
class Noticed:
    """Runs of the machine until it is no longer expected to be the fastest, and until it is again."""

    lost: int
    regained: int


def throttle(fleet: str, seed: int, *, mixed: bool = False) -> Noticed:
    """Of chat. ``mixed``: chat is only 45 % of the machine's runs, but all of them count."""
    watch = _watched(fleet, seed, mixed)
    lost = watch.until(lambda: watch.fastest() != DESK)
    for _ in range(THROTTLED - lost):
        watch.run(DESK)
    watch.slower = 1.0
    return Noticed(lost, watch.until(lambda: watch.fastest() == DESK))


def trace(fleet: str, seed: int, *, after: int = THROTTLED // 2) -> list[tuple[float, float]]:
    """Of each run on the desk: (what it decodes at, what is expected of it afterwards), in tokens/s of the 8B model."""
    watch = _watched(fleet, seed, False)
    found = []
    for n in range(THROTTLED + after):
        watch.slower = SLOWER if n < THROTTLED else 1.0
        watch.run(DESK)
        found.append((watch.machines[DESK].decode / watch.slower, watch.expected(DESK).decode.value or 0.0))
    return found


def _watched(fleet: str, seed: int, mixed: bool) -> _Watch:
    """All machines have run often, and the desk is throttled from now on."""
    instance = replace(instances.steady(fleet, seed, load=0.4, tasks=5 * BEFORE), rates={})
    watch = _Watch(instance, mixed)
    for name in watch.machines:
        for _ in range(BEFORE):
            watch.run(name)
    watch.slower = SLOWER
    return watch


class _Watch:
    """The statistics of a fleet, one run after the other."""

    def __init__(self, instance: Instance, mixed: bool) -> None:
        self.instance = instance
        self.machines = {machine.name: machine for machine in instance.machines}
        self.statistics = Statistics()
        self.slower = 1.0
        self._jobs = [job for job in instance.jobs if mixed or job.domain == DOMAIN.label]
        self._samples: dict[CellKey, list[Sample]] = {}
        self._seq = 0

    def run(self, name: str) -> None:
        """The next job's, whatever it is; the same jobs in the same order come again when all have run."""
        job, machine = self._jobs[self._seq % len(self._jobs)], self.machines[name]
        model = job.model or DOMAIN.model
        if model not in self.instance.models_of(machine):
            job, model = replace(job, domain=DOMAIN.label), DOMAIN.model
        self._seq += 1
        sample = sample_of(self._done(job, model, machine), self._seq, self._now_us)
        assert sample is not None
        cell = self._samples.setdefault(key_of(sample), [])
        cell.append(sample)
        self.statistics.put(fold(cell))

    def until(self, holds: Callable[[], bool]) -> int:
        """So many runs on the desk until ``holds``, at least one."""
        for n in range(1, MOST):
            self.run(DESK)
            if holds():
                return n
        return MOST

    def fastest(self) -> str:
        """Whose mean answer is expected first, by the product."""
        return min(self.machines, key=lambda name: (self._expected_s(name), name))

    def expected(self, name: str) -> Effective:
        size = int(MODELS[DOMAIN.model] * 1e9)
        return effective(self.statistics, DOMAIN.model, DOMAIN.label, name, model_bytes=size, now_us=self._now_us)

    def _expected_s(self, name: str) -> float:
        return service_seconds(self.expected(name), resident=True, prompt_tokens=round(DOMAIN.prompt))

    @property
    def _now_us(self) -> int:
        return int(self._seq * BETWEEN_S * 1e6)

    def _done(self, job: Job, model: str, machine: Machine) -> TaskCompleted:
        prefill_s, decode_s = self.instance.run_s(job, model, machine, 0.0)
        slower = self.slower if machine.name == DESK else 1.0
        times = Times(load_s=0.0, prefill_s=slower * prefill_s, decode_s=slower * decode_s, source="backend")
        return TaskCompleted(
            id=f"e{self._seq}", at=0.0, by=machine.name, task=f"t{self._seq}", attempt=1, worker=machine.name, boot="b",
            model=model, digest=model, model_bytes=int(MODELS[model] * 1e9), domain=job.domain, resident=True,
            tokens=Tokens(prompt=job.prompt, cached=0, output=job.output), times=times, others_use=0.0,
        )  # fmt: skip
