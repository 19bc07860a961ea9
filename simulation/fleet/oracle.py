"""The clairvoyant: it knows every duration before it begins, and still has to decide one task after the other.

Answers "how much is left to be had by knowing more?". Greedy least completion time over true durations, in five orders, of
which the best counts for each instance. Strong, but no proven optimum; what is proven is in ``bound``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.router.dispatch.permits import UNLIMITED, Limits
from simulation.fleet.outcome import Outcome
from simulation.fleet.physics import DOMAINS, MODELS, REFERENCE_GB, Instance, Job, Memory
from simulation.fleet.rival_world import Rule, World

WINDOW = 24
AHEAD = 8
Key = Callable[[Job, World], float]


class Clairvoyant(Rule):
    """``key`` is its order; with ``warm`` a machine that would have to load looks ahead for a task it is warm for."""

    def __init__(self, name: str, key: Key, *, warm: bool = True) -> None:
        self.name, self._key, self._warm = f"oracle_{name}", key, warm

    def pick(self, world: World) -> tuple[Job, str] | None:
        queue = sorted(world.waiting, key=lambda job: (self._key(job, world), job.at))
        chosen, loads = self._walk(queue, world)
        found = next((place for place in chosen if place.now), None)
        if found is None:
            return None
        if self._warm and found.machine in loads:
            start = queue.index(found.job)
            resident = world.seats[found.machine].memory.resident
            for job in queue[start + 1 : start + 1 + AHEAD]:
                if job.model in resident and self._best_now(job, world) == found.machine:
                    return job, found.machine
        return found.job, found.machine

    def _walk(self, queue: list[Job], world: World) -> tuple[list[_Place], set[str]]:
        """Place the window one after the other; the first that would start now ends it."""
        ready = {n: max(world.now, s.until if s.job else world.now) for n, s in world.seats.items() if not s.known_gone}
        memory: dict[str, Memory] = {n: world.seats[n].memory for n in ready}
        placed: list[_Place] = []
        for job in queue[:WINDOW]:
            ends = {n: at + world.total_s(job, world.seats[n], memory[n], at) for n, at in ready.items()}
            best = min(ends, key=lambda n: (ends[n], n))
            seat = world.seats[best]
            now = seat.free and ready[best] <= world.now
            if now:
                loads = set() if job.model in seat.memory.resident else {best}
                return [*placed, _Place(job, best, True)], loads
            ready[best] = ends[best]
            memory[best] = memory[best].copy()
            memory[best].touch(job.model or "")
            placed.append(_Place(job, best, False))
        return placed, set()

    def _best_now(self, job: Job, world: World) -> str:
        ends = {
            n: max(world.now, s.until if s.job else world.now) + world.total_s(job, s, s.memory, world.now)
            for n, s in world.seats.items()
            if not s.known_gone
        }
        return min(ends, key=lambda n: (ends[n], n))


@dataclass(frozen=True)
class _Place:
    job: Job
    machine: str
    now: bool


def _domain_mean_s(job: Job, world: World) -> float:
    """What a mean task of its domain takes on the fastest machine: all that a key may know."""
    domain = next(d for d in DOMAINS if d.label == job.domain)
    size = MODELS[job.model or ""] / REFERENCE_GB
    return min(
        size * (domain.prompt / s.machine.prefill + domain.output / s.machine.decode) for s in world.seats.values()
    )


ORDERS: dict[str, tuple[Key, bool]] = {
    "fifo": (lambda job, world: job.at, False),
    "fifo_warm": (lambda job, world: job.at, True),
    "k1": (lambda job, world: job.at + _domain_mean_s(job, world), True),
    "k3": (lambda job, world: job.at + 3.3 * _domain_mean_s(job, world), True),
    "short_first": (_domain_mean_s, True),
}


def oracle(instance: Instance, measure: Callable[[Outcome], float], limits: Limits = UNLIMITED) -> Outcome:
    """The best of the five by ``measure``, least is best."""
    runs = (World(instance, Clairvoyant(name, key, warm=warm), limits).run() for name, (key, warm) in ORDERS.items())
    return min(runs, key=measure)
