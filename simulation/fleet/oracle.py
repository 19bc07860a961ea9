"""The clairvoyant: it knows every duration before it begins, and still has to decide one task after the other.

Answers "how much is left to be had by knowing more?". Greedy least completion time over true durations, in five orders whose keys
know domain means only, as the product's; the best of the five counts for each instance. It keeps the promises of order that the
product makes (jumped at most four times, overtaken by at most a minute's work). ``free`` keeps none, may take the shortest first
too, and shows what the promises cost. Strong, but no proven optimum; what is proven is in ``bound``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from services.router.dispatch.order import OVERTAKEN_MOST_S
from services.router.dispatch.permits import UNLIMITED, Limits
from services.router.dispatch.planner import BYPASS_AGE_MOST_S, BYPASSES_MOST, LOOK_AHEAD, WINDOW
from simulation.fleet.outcome import Outcome
from simulation.fleet.physics import DOMAINS, MODELS, REFERENCE_GB, Instance, Job, Memory
from simulation.fleet.rival_world import Rule, World

FIRST_S = -1e9
"""Added to the arrival of whoever was overtaken enough, where the order knows no arrivals."""


@dataclass(frozen=True)
class Order:
    """``arrival + k · (mean service of its domain)``, or the mean service alone; with or without warm look-ahead."""

    name: str
    k: float = 0.0
    warm: bool = True
    arrival: bool = True


ORDERS = (
    Order("fifo", warm=False),
    Order("fifo_warm"),
    Order("k1", k=1.0),
    Order("k2", k=2.0),
    Order("k3", k=3.3),
)
"""The family of the product's own: what its settings allow (k from 0 to 3.3), so that what is left is the worth of knowing."""
SHORT_FIRST = Order("short_first", k=1.0, arrival=False)
"""Which the product refuses, because it starves long tasks."""


class Clairvoyant(Rule):
    def __init__(self, order: Order, *, free: bool = False) -> None:
        self.name = f"oracle_{order.name}"
        self._order, self._free = order, free
        self._jumped: Counter[str] = Counter()
        self._passed_s: defaultdict[str, float] = defaultdict(float)

    def pick(self, world: World) -> tuple[Job, str] | None:
        queue = sorted(world.waiting, key=lambda job: (self._key(job, world), job.at))
        found = self._walk(queue, world)
        if found is None:
            return None
        job, machine = found
        if self._order.warm and job.model not in world.seats[machine].memory.resident:
            job = self._warm_instead(queue, job, machine, world)
        for other in queue[queue.index(job) + 1 :]:
            if other.at < job.at:
                self._passed_s[other.id] += _mean_s(job, world)
        return job, machine

    def _key(self, job: Job, world: World) -> float:
        if not self._free and self._passed_s[job.id] >= OVERTAKEN_MOST_S:
            return job.at + (0.0 if self._order.arrival else FIRST_S)
        return (job.at if self._order.arrival else 0.0) + self._order.k * _mean_s(job, world)

    def _walk(self, queue: list[Job], world: World) -> tuple[Job, str] | None:
        """Place the window one after the other; the first that would start now is it."""
        ready = {n: _ready(world, n) for n, s in world.seats.items() if not s.known_gone}
        memory: dict[str, Memory] = {n: world.seats[n].memory for n in ready}
        for job in queue[:WINDOW]:
            ends = {n: at + world.total_s(job, world.seats[n], memory[n], at) for n, at in ready.items()}
            best = min(ends, key=lambda n: (ends[n], n))
            if world.seats[best].free and ready[best] <= world.now:
                return job, best
            ready[best] = ends[best]
            memory[best] = memory[best].copy()
            memory[best].touch(job.model or "")
        return None

    def _warm_instead(self, queue: list[Job], head: Job, machine: str, world: World) -> Job:
        """One of the next that is warm there and would choose that machine itself; else the head."""
        resident, jumped, start = world.seats[machine].memory.resident, list[Job](), queue.index(head)
        for job in queue[start : start + 1 + LOOK_AHEAD]:
            if job is not head and job.model in resident and _best_now(job, world) == machine:
                self._jumped.update(passed.id for passed in jumped)
                return job
            young = world.now - job.at < BYPASS_AGE_MOST_S
            if not self._free and not (young and self._jumped[job.id] < BYPASSES_MOST):
                break
            jumped.append(job)
        return head


def _ready(world: World, machine: str) -> float:
    seat = world.seats[machine]
    return max(world.now, seat.until if seat.job else world.now)


def _best_now(job: Job, world: World) -> str:
    ends = {
        n: _ready(world, n) + world.total_s(job, s, s.memory, world.now)
        for n, s in world.seats.items()
        if not s.known_gone
    }
    return min(ends, key=lambda n: (ends[n], n))


def _mean_s(job: Job, world: World) -> float:
    """What a mean task of its domain takes on the fastest machine: all that a key may know."""
    domain = next(d for d in DOMAINS if d.label == job.domain)
    size = MODELS[job.model or ""] / REFERENCE_GB
    return min(
        size * (domain.prompt / s.machine.prefill + domain.output / s.machine.decode) for s in world.seats.values()
    )


def clairvoyants(instance: Instance, limits: Limits = UNLIMITED, *, free: bool = False) -> tuple[Outcome, ...]:
    """What each of the five orders comes to; with ``free`` each of six without promises."""
    orders = (*ORDERS, SHORT_FIRST) if free else ORDERS
    return tuple(World(instance, Clairvoyant(order, free=free), limits).run() for order in orders)


def oracle(instance: Instance, measure: Callable[[Outcome], float], *, free: bool = False) -> Outcome:
    """The best of them by ``measure``, least is best."""
    return min(clairvoyants(instance, free=free), key=measure)
