"""When may a task start that a limit holds back?

Answers "in about how many seconds is a permit given back, and to whom?" for people: by what the attempts that hold permits have
left, in the order of the queue. Nothing is released by it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from services.router.dispatch.bids import Bids
from services.router.dispatch.completion import Machine
from services.router.dispatch.live import Live
from services.router.dispatch.order import service_of
from services.router.dispatch.permits import Counts
from services.router.dispatch.releasing import Release
from services.router.dispatch.state import RouterState, Task

FULL = frozenset({"model_full", "client_full", "backend_full"})
Permits = tuple[str, ...]


class Walk(Protocol):
    """A planner's pass that has come to its end."""

    @property
    def state(self) -> RouterState: ...
    @property
    def live(self) -> Live: ...
    @property
    def counts(self) -> Counts: ...
    @property
    def bids(self) -> Bids: ...
    @property
    def machines(self) -> Mapping[str, Machine]: ...
    @property
    def releases(self) -> Sequence[Release]: ...
    @property
    def holds(self) -> Mapping[str, str]: ...
    @property
    def starts(self) -> Mapping[str, float | None]: ...
    @property
    def wanted(self) -> Mapping[str, tuple[str, str]]: ...


class GivenBack:
    """``held``: the permits of each attempt that holds some, and the seconds until it gives them back."""

    def __init__(self, counts: Counts, held: Iterable[tuple[Permits, float]]) -> None:
        self._counts = counts
        self._ends: dict[str, list[float]] = {}
        for permits, end_s in held:
            self._until(permits, end_s)

    def start_s(self, ways: Sequence[Permits], service_s: float) -> float:
        """Seconds until all permits of one of the ``ways`` can be had, the soonest. They are held from then on for ``service_s``:
        the next in line waits for that, too."""
        start_s, permits = min(((max(map(self._free_in, way)), way) for way in ways), key=lambda each: each[0])
        self._until(permits, start_s + service_s)
        return start_s

    def _until(self, permits: Permits, end_s: float) -> None:
        for key in [key for permit in permits for key, _ in self._limits_of(permit)]:
            insort(self._ends.setdefault(key, []), end_s)

    def _free_in(self, permit: str) -> float:
        """All ends but the limit less one must have come: under a lowered limit more than one."""
        waits = [0.0]
        for key, most in self._limits_of(permit):
            ends = self._ends.get(key, [])
            if len(ends) >= most:
                waits.append(ends[len(ends) - most])
        return max(waits)

    def _limits_of(self, permit: str) -> Iterator[tuple[str, int]]:
        """Its own and that of all together, where there are such."""
        kind, name = permit.split(":", 1)
        limit = self._counts.limits.kind(permit)
        for key, most in ((permit, limit.of(name)), (f"{kind}:*", limit.total)):
            if most is not None:
                yield key, most


def starts_behind_limits(walk: Walk, waiting: Sequence[Task]) -> dict[str, float]:
    """Of those of ``waiting``, in their order, who wait for nothing but a permit, and for a machine that is there."""
    full = [task for task in waiting if _is_held_by_a_limit(walk, task.submitted.task)]
    if not full:
        return {}
    permits, found = GivenBack(walk.counts, _holders(walk)), dict[str, float]()
    for task in full:
        machines = [walk.machines[w] for w in walk.bids.machines_for(task) if w in walk.machines]
        free_in = [_slot_free_in(machine) for machine in machines if machine.heard]
        if free_in:
            start_s = permits.start_s(_ways(walk, task), service_of(task, walk.live))
            found[task.submitted.task] = max(start_s, min(free_in))
    return found


def _slot_free_in(machine: Machine) -> float:
    """By what runs there. What the pass put there in thought stands before or behind it in the queue, like itself."""
    ends = sorted(machine.left.values())
    return 0.0 if len(ends) < machine.slots else ends[len(ends) - machine.slots]


def _is_held_by_a_limit(walk: Walk, name: str) -> bool:
    return walk.holds.get(name, "").partition(":")[0] in FULL and walk.starts.get(name) is None


def _holders(walk: Walk) -> Iterator[tuple[Permits, float]]:
    """Whatever has permits, or is about to."""
    for name, task in walk.state.tasks.items():
        if (attempt := task.live) is not None:
            machine = walk.machines.get(attempt.worker or attempt.expected or "")
            yield attempt.permits, 0.0 if machine is None else machine.left.get((name, attempt.n), machine.wait_s)
    for promise in walk.live.promises():
        if (promised := walk.state.tasks.get(promise.task)) is not None and promised.live is None:
            yield promise.permits, promise.service_s
    for release in walk.releases:
        yield release.permits, release.offer.total_s


def _ways(walk: Walk, task: Task) -> list[Permits]:
    """The permits that it needs, with each model; of a backend that of the machine which it wants."""
    name, client = task.submitted.task, f"client:{task.submitted.client}"
    if name in walk.wanted:
        model, worker = walk.wanted[name]
        return [(f"model:{model}", client, walk.state.backend_permit(worker))]
    return [(f"model:{model}", client) for model, _ in walk.bids.pairs(task)]
