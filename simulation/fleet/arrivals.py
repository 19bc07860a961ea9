"""Who comes next: at set moments, or one for each that has ended. Pure."""

from __future__ import annotations

from dataclasses import replace

from simulation.fleet.physics import Instance, Job


class Arrivals:
    """``first`` are those whose moment is set; ``ended`` gives those that come because one more has ended."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._sent = self._ended = 0

    def first(self) -> list[Job]:
        if self._instance.concurrency is None:
            return list(self._instance.jobs)
        warmup = self._instance.warmup
        return self._next(min(warmup, len(self._instance.machines)) if warmup else self._instance.concurrency, 0.0)

    def ended(self, now: float) -> list[Job]:
        """The warm-up keeps one task on each machine; the rest begins when all of it has ended."""
        if self._instance.concurrency is None:
            return []
        self._ended += 1
        warmup = self._instance.warmup
        if self._ended == warmup:
            return self._next(self._instance.concurrency, now)
        if self._ended < warmup:
            return self._next(min(1, warmup - self._sent), now)
        return self._next(1, now)

    def _next(self, count: int, now: float) -> list[Job]:
        jobs = self._instance.jobs[self._sent : self._sent + count]
        self._sent += len(jobs)
        return [replace(job, at=now) for job in jobs]
