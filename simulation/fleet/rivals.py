"""The rules that people use today, in as few words as each takes: push by chance, in turn or by load, and pull.

Answers "what are we compared with?". None of these is the product's code; the published legacy formula is in ``legacy``.
"""

from __future__ import annotations

import hashlib

from simulation.fleet.physics import Job, mean_service_s
from simulation.fleet.rival_world import Rule, Seat, World


class Random(Rule):
    name = "random"

    def place(self, job: Job, world: World) -> str | None:
        return world.random.choice(world.alive()).machine.name


class RoundRobin(Rule):
    name = "round_robin"

    def __init__(self) -> None:
        self._turn = 0

    def place(self, job: Job, world: World) -> str | None:
        seats = world.alive()
        self._turn += 1
        return seats[self._turn % len(seats)].machine.name


class LeastInFlight(Rule):
    """Blind to speed; ties by lot."""

    name = "least_in_flight"

    def place(self, job: Job, world: World) -> str | None:
        seats = world.alive()
        least = min(seat.in_flight for seat in seats)
        return world.random.choice([s for s in seats if s.in_flight == least]).machine.name


class GpuStack(Rule):
    """GPUStack's defaults for a session: affinity and least in-flight, 1 : 1, each normalised to sum 1; ties by lot."""

    name = "gpustack"

    def place(self, job: Job, world: World) -> str | None:
        seats = world.alive()
        by_hash = sorted(seats, key=lambda s: _hash(job.session, s), reverse=True)
        affinity = {s.machine.name: 0.5**rank for rank, s in enumerate(by_hash)}
        idle = {s.machine.name: 1.0 / (1 + s.in_flight) for s in seats}
        score = {
            name: affinity[name] / sum(affinity.values()) + idle[name] / sum(idle.values()) for name in sorted(affinity)
        }
        best = max(score.values())
        return world.random.choice([name for name, value in score.items() if best - value < 1e-12])


class Pull(Rule):
    """Whoever is free takes the oldest task that it may: one shared queue, first in, first out."""

    name = "pull"

    def pick(self, world: World) -> tuple[Job, str] | None:
        free = sorted((s for s in world.seats.values() if s.free), key=self.order)
        for job in world.waiting:
            for seat in free:
                if world.may_start(job, seat.machine.name):
                    return job, seat.machine.name
        return None

    def order(self, seat: Seat) -> float:
        """Whoever has waited longest is asked first."""
        return seat.idle_since


class PullFastFirst(Pull):
    """The same, but of several free machines the faster one takes it. It is told the true speeds."""

    name = "pull_fast_first"

    def order(self, seat: Seat) -> float:
        return mean_service_s(seat.machine)


def _hash(session: str, seat: Seat) -> bytes:
    return hashlib.blake2b(f"{session}\n{seat.machine.name}".encode(), digest_size=8).digest()
