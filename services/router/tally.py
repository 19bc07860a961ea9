"""What has happened since this router started, counted: releases, deviations, failures, and what predictions were worth.

Answers "how often?" and "how far off?" for ``/metrics``. Fed with each new fact; it reads no clock and decides nothing. The log
has the same for ever (docs/sql.md). Keys are bounded: facts name models and machines, and both come and go over the years.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import msgspec

from schemas.events import (
    AnyEvent,
    AttemptFailed,
    Prediction,
    TaskCancelled,
    TaskCompleted,
    TaskDead,
    TaskFailed,
    TaskReleased,
    TaskStarted,
)

RATIOS = (0.25, 0.5, 0.7, 0.85, 1.0, 1.15, 1.4, 2.0, 4.0)
"""Bounds of observed / predicted: within 15 % is as good as the simulator promises, beyond a factor of 2 something is wrong."""
PAIRS_MOST = 2_000
OPEN_MOST = 10_000
OTHER = ("other", "other")

Key = tuple[str, int]
Pair = tuple[str, str]


@dataclass
class Ratios:
    """Of one (worker, model): ``counts`` by the bounds of ``RATIOS``, the last one for what is beyond all."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(RATIOS) + 1))
    sum: float = 0.0
    predicted_s: float = 0.0
    observed_s: float = 0.0

    def add(self, predicted_s: float, observed_s: float) -> None:
        ratio = observed_s / predicted_s
        self.counts[next((n for n, bound in enumerate(RATIOS) if ratio <= bound), len(RATIOS))] += 1
        self.sum += ratio
        self.predicted_s += predicted_s
        self.observed_s += observed_s


class Deviation(msgspec.Struct, frozen=True, kw_only=True):
    """Another machine started a task than it was released for."""

    task: str
    attempt: int
    model: str
    planned: str
    served: str


class Tally:
    def __init__(self) -> None:
        self.releases: Counter[str] = Counter()
        self.deviations: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.ratios: dict[Pair, Ratios] = {}
        self._open: dict[Key, TaskReleased] = {}

    def tell(self, event: AnyEvent) -> Deviation | None:
        """One new fact, in the log's order; what it reveals."""
        match event:
            case TaskReleased():
                self._released(event)
            case TaskStarted():
                return self._started(event)
            case AttemptFailed():
                self.failures[event.failure] += 1
                self._open.pop((event.task, event.attempt), None)
            case TaskCompleted():
                self.ends["completed"] += 1
                self.outcomes[event.outcome] += 1
                self._completed(event)
            case TaskFailed():
                self.ends["failed"] += 1
            case TaskCancelled():
                self.ends["cancelled"] += 1
            case TaskDead():
                self.ends["dead"] += 1
            case _:
                pass
        return None

    def _released(self, event: TaskReleased) -> None:
        self.releases[self._model(event.model)] += 1
        self._open[event.task, event.attempt] = event
        while len(self._open) > OPEN_MOST:
            del self._open[next(iter(self._open))]

    def _started(self, event: TaskStarted) -> Deviation | None:
        released = self._open.get((event.task, event.attempt))
        if released is None or released.expected_worker in (None, event.worker):
            return None
        self.deviations[self._model(event.model)] += 1
        return Deviation(
            task=event.task,
            attempt=event.attempt,
            model=event.model,
            planned=released.expected_worker or "",
            served=event.worker,
        )

    def _completed(self, event: TaskCompleted) -> None:
        """A prediction is of the machine that it was made for; another one's time says nothing about it."""
        released = self._open.pop((event.task, event.attempt), None)
        observed_s = event.times.total_s
        if released is None or released.expected_worker != event.worker or not observed_s:
            return
        predicted_s = _running_s(released.predicted)
        if predicted_s is None or predicted_s <= 0.0:
            return
        pair = (event.worker, event.model)
        if pair not in self.ratios and len(self.ratios) >= PAIRS_MOST:
            pair = OTHER
        self.ratios.setdefault(pair, Ratios()).add(predicted_s, observed_s)

    def _model(self, model: str) -> str:
        return model if model in self.releases or len(self.releases) < PAIRS_MOST else OTHER[1]


def _running_s(predicted: Prediction) -> float | None:
    """Of the attempt itself: what a machine reports of it has no part of the queue."""
    return None if predicted.total_s is None else predicted.total_s - (predicted.wait_s or 0.0)
