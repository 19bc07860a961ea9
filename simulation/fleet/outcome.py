"""What one run of one policy on one instance came to, and the numbers that tables are made of. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from schemas.events import AnyEvent
from simulation.fleet.physics import QUALITY, Instance


@dataclass(frozen=True)
class Done:
    """One finished task: when it came, started and ended, where, with which model. Seconds of virtual time."""

    job: str
    at: float
    start: float
    end: float
    machine: str
    model: str
    domain: str


@dataclass(frozen=True)
class Outcome:
    """``log`` is there only for our own policy: what the product stored, each with its moment."""

    policy: str
    instance: Instance
    done: tuple[Done, ...]
    log: tuple[AnyEvent, ...] = field(default=(), repr=False)

    @property
    def complete(self) -> bool:
        return len(self.done) == len(self.instance.jobs)

    @property
    def counted(self) -> tuple[Done, ...]:
        """Without the warm-up."""
        warmup = {job.id for job in self.instance.jobs[: self.instance.warmup]}
        return tuple(d for d in self.done if d.job not in warmup)

    @property
    def makespan_s(self) -> float:
        return max(d.end for d in self.counted) - min(d.at for d in self.counted)

    @property
    def mean_s(self) -> float:
        return sum(d.end - d.at for d in self.counted) / len(self.counted)

    def quantile_s(self, share: float) -> float:
        return quantile([d.end - d.at for d in self.counted], share)

    @property
    def quality(self) -> float:
        """The mean true quality of the answers, in points of 100."""
        return 100.0 * sum(QUALITY[d.model][d.domain] for d in self.counted) / len(self.counted)

    def share_of(self, machine: str) -> float:
        return sum(d.machine == machine for d in self.counted) / len(self.counted)

    @property
    def digest(self) -> str:
        text = "\n".join(f"{d.job} {d.start:.6f} {d.end:.6f} {d.machine} {d.model}" for d in self.done)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def quantile(values: Sequence[float], share: float) -> float:
    """The value at that rank of the sorted ones."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


@dataclass(frozen=True)
class Spread:
    """A mean over seeds with the standard error of it, and the median."""

    mean: float
    error: float
    median: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.error:.2f}"


def spread(values: Sequence[float]) -> Spread:
    n = len(values)
    mean = sum(values) / n
    variance = sum((value - mean) ** 2 for value in values) / (n - 1) if n > 1 else 0.0
    return Spread(mean, (variance / n) ** 0.5, quantile(values, 0.5), n)
