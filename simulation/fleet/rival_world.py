"""The world in which policies run that are not the product: the same machines and the same luck, and no protocol in the way.

Answers "what would that rule have done?". A rule either pushes a task to a machine as it comes (``place``), or leaves it in the
common queue, from which ``pick`` hands it to machines that are free. It loses no millisecond to messages.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field

from services.router.dispatch.permits import UNLIMITED, Counts, Limits
from simulation.fleet.arrivals import Arrivals
from simulation.fleet.outcome import Done, Outcome
from simulation.fleet.physics import Instance, Job, Machine, Memory

LEASE_S = 30.0
"""After so long everybody knows that a machine is gone, as our own router would."""


@dataclass
class Seat:
    """A machine with what it runs and, where a rule pushes, what is queued on it."""

    machine: Machine
    memory: Memory
    queue: list[Job] = field(default_factory=list)
    job: Job | None = None
    started: float = 0.0
    until: float = 0.0
    idle_since: float = 0.0
    gone: bool = False
    known_gone: bool = False
    runs: int = 0

    @property
    def free(self) -> bool:
        return self.job is None and not self.gone

    @property
    def in_flight(self) -> int:
        return len(self.queue) + (self.job is not None)


class Rule:
    """One policy. ``ended`` is where it may learn; what it is told there is what a router would see."""

    name = ""

    def place(self, job: Job, world: World) -> str | None:
        """The machine to push it to, None for the common queue."""
        return None

    def pick(self, world: World) -> tuple[Job, str] | None:
        """The next task of the common queue to start now on a free machine."""
        return None

    def ended(self, job: Job, done: Done, world: World) -> None:
        return None


class World:
    """One instance under one rule."""

    def __init__(self, instance: Instance, rule: Rule, limits: Limits = UNLIMITED) -> None:
        self.instance, self.rule, self.limits = instance, rule, limits
        self.now = 0.0
        self.random = random.Random(f"{rule.name}.{instance.seed}")
        self.seats = {m.name: Seat(m, Memory(m.vram)) for m in instance.machines}
        self.waiting: list[Job] = []
        self.held: Counter[str] = Counter()
        self.done: list[Done] = []
        self._arrivals = Arrivals(instance)
        self._heap: list[tuple[float, int, str, object]] = []
        self._order = 0

    def alive(self) -> list[Seat]:
        """Who may be pushed to: everybody not known to be gone; all, where all are."""
        return [s for s in self.seats.values() if not s.known_gone] or list(self.seats.values())

    def may_start(self, job: Job, machine: str) -> bool:
        return Counts(self.limits, dict(self.held)).lacking(permits(job, machine)) is None

    def total_s(self, job: Job, seat: Seat, memory: Memory, at: float) -> float:
        """What it would really take there, the load included."""
        model = job.model or ""
        load = 0.0 if model in memory.resident else self.instance.load_s(model, seat.machine)
        return load + sum(self.instance.run_s(job, model, seat.machine, at + load))

    def run(self) -> Outcome:
        for job in self._arrivals.first():
            self._at(job.at, "arrive", job)
        for name, (gone, back) in self.instance.away.items():
            for moment, what in ((gone, "gone"), (gone + LEASE_S, "known"), (back, "back")):
                self._at(moment, what, name)
        while self._heap and len(self.done) < len(self.instance.jobs):
            self.now, _, what, about = heapq.heappop(self._heap)
            self._happen(what, about)
            self._start()
        return Outcome(self.rule.name, self.instance, tuple(self.done))

    def _at(self, moment: float, what: str, about: object) -> None:
        self._order += 1
        heapq.heappush(self._heap, (moment, self._order, what, about))

    def _happen(self, what: str, about: object) -> None:
        if isinstance(about, Job):
            self._arrive(about)
        elif isinstance(about, tuple):
            self._end(*about)
        elif isinstance(about, str):
            seat = self.seats[about]
            if what == "gone":
                seat.gone = True
                seat.runs += 1
            elif what == "known":
                seat.known_gone = True
                lost, seat.queue = [*([seat.job] if seat.job else []), *seat.queue], []
                if seat.job is not None:
                    self._release(seat.job, about)
                seat.job = None
                for job in lost:
                    self._arrive(job)
            else:
                seat.gone = seat.known_gone = False
                seat.memory, seat.idle_since = Memory(seat.machine.vram), self.now

    def _arrive(self, job: Job) -> None:
        machine = self.rule.place(job, self)
        if machine is None:
            self.waiting.append(job)
        else:
            self.seats[machine].queue.append(job)

    def _start(self) -> None:
        for seat in self.seats.values():
            if seat.free and seat.queue:
                self._begin(seat.queue.pop(0), seat)
        while self.waiting and any(seat.free for seat in self.seats.values()):
            picked = self.rule.pick(self)
            if picked is None:
                return
            self.waiting.remove(picked[0])
            self._begin(picked[0], self.seats[picked[1]])

    def _begin(self, job: Job, seat: Seat) -> None:
        seconds = self.total_s(job, seat, seat.memory, self.now)
        seat.memory.touch(job.model or "")
        seat.job, seat.started, seat.until = job, self.now, self.now + seconds
        seat.runs += 1
        self.held.update(permits(job, seat.machine.name))
        self._at(seat.until, "end", (seat, seat.runs))

    def _end(self, seat: Seat, run: int) -> None:
        if run != seat.runs or seat.job is None:
            return
        job, seat.job, seat.idle_since = seat.job, None, self.now
        self._release(job, seat.machine.name)
        done = Done(job.id, job.at, seat.started, self.now, seat.machine.name, job.model or "", job.domain)
        self.done.append(done)
        self.rule.ended(job, done, self)
        for next_job in self._arrivals.ended(self.now):
            self._arrive(next_job)

    def _release(self, job: Job, machine: str) -> None:
        self.held.subtract(permits(job, machine))


def permits(job: Job, machine: str) -> tuple[str, ...]:
    return f"model:{job.model}", f"client:{job.client}", f"backend:{machine}"
