"""Which waiting tasks to release now, and to whom: ``plan(state, live, now, limits) -> Plan`` (ROUTING.md B3.5, B3.6).

Answers "what leaves the queue?" by late-binding least expected completion. The queue is walked in order; each placeable task is
put, in thought, on the pair of model and machine where its cost is least. If that machine has a credit now the task is released,
else it waits for it, and says so. What is put in thought takes its place on the machine, so a later task may go to a slower free
one exactly when that is better than queueing behind. A release takes its permits or none; a skipped task keeps its place.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.statistics import Statistics
from services.router.dispatch.behind_limits import starts_behind_limits
from services.router.dispatch.bids import Bids
from services.router.dispatch.completion import Machine
from services.router.dispatch.glance import Glance, glance_at
from services.router.dispatch.holds import nobody, why_held
from services.router.dispatch.live import Live, Wait
from services.router.dispatch.machines import available, machines_of
from services.router.dispatch.offers import Offer
from services.router.dispatch.order import OVERTAKEN_MOST_S, behind, in_order, queue, service_of
from services.router.dispatch.outlook import Outlook
from services.router.dispatch.permits import Counts, Limits, counts_of
from services.router.dispatch.recording import recorded
from services.router.dispatch.releasing import Refused, Release, Releasing
from services.router.dispatch.state import RouterState, Task

__all__ = ["Plan", "Release", "available", "plan", "queue"]

WINDOW = 24
"""Held tasks that a pass places in thought, for each set of machines that they may go to: those that wait for a busy machine must
not hide the rest from a free one. A window of 1 was 6 to 11 times as slow at load .75, one of 4 13 %."""
WINDOW_SHOWN = 200
"""For people, who want to see when each of so many will start."""
LOOK_AHEAD = 8
BYPASSES_MOST = 4
BYPASS_AGE_MOST_S = 600.0
"""How often, and until which age, a task may be jumped for a model that is warm: counting everyone jumped.

ROUTING.md has 60 s; at load .75 on two machines every task is older by then, and twice the model loads made means 11 % worse."""
RELEASES_MOST = 64
"""Of one pass; the next comes when these are in the log, some milliseconds later."""


@dataclass(frozen=True)
class Plan:
    """``holds``: task -> why it waits, ``code: words``, for every waiting task that was looked at and not released.

    ``starts``: predicted seconds, None unknown; ``machines``: model and machine that it waits for; ``bypasses``: how often a
    look-ahead of this pass put others before it; ``overtaken_s``: the E[S] of later, shorter ones of its class that go first.
    """

    releases: tuple[Release, ...]
    holds: dict[str, str]
    starts: dict[str, float | None]
    bypasses: dict[str, int]
    overtaken_s: dict[str, float]
    machines: dict[str, tuple[str, str]] = field(default_factory=dict)


def plan(
    state: RouterState,
    live: Live,
    now: float,
    limits: Limits,
    skip: frozenset[str] = frozenset(),
    *,
    outlook: Outlook | None = None,
    explain: bool = True,
    window: int = WINDOW,
    glance: Glance | None = None,
) -> Plan:
    """``skip`` are tasks with an end on its way; like those with a release on its way they are neither released nor given a
    reason, and what such a release takes is taken. Without ``explain`` tasks behind
    the window get no reason. ``glance`` is the state's, where there is one."""
    outlook, glance = outlook or Outlook(Statistics()), glance or glance_at(state)
    machines, counts = machines_of(state, live, now, outlook, glance.placed()), counts_of(limits, state)
    promises = [p for p in live.promises() if (task := state.tasks.get(p.task)) is not None and task.live is None]
    for promise in promises:
        counts.take(promise.permits)
        if promise.worker in machines:
            machines[promise.worker].promise(promise.model, promise.service_s)
    walk = Pass(state, live, now, counts, outlook, machines)
    skip |= {promise.task for promise in promises}
    waiting = [task for task in in_order(glance.waiting, live, outlook.order_k) if task.submitted.task not in skip]
    return walk.run(waiting, window, explain)


class Held(NamedTuple):
    """Why a task waits, how long, where that is known, and for what: its best offer of those that no limit forbids."""

    reason: str
    wait_s: float | None
    offer: Offer


@dataclass
class Pass:
    """One walk over the queue."""

    state: RouterState
    live: Live
    now: float
    counts: Counts
    outlook: Outlook
    machines: dict[str, Machine]
    releases: list[Release] = field(default_factory=list)
    holds: dict[str, str] = field(default_factory=dict)
    starts: dict[str, float | None] = field(default_factory=dict)
    bypasses: dict[str, int] = field(default_factory=dict)
    overtaken_s: dict[str, float] = field(default_factory=dict)
    wanted: dict[str, tuple[str, str]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    placed: Counter[frozenset[str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.free = {worker for worker, machine in self.machines.items() if machine.heard and machine.free > 0}
        self.bids = Bids(self.state, self.live, self.machines, self.outlook)
        self.releasing = Releasing(self.state, self.live, self.now, self.counts, self.machines, self.bids.takes_s)

    def run(self, waiting: list[Task], window: int, explain: bool) -> Plan:
        index, hidden = 0, list[Task]()
        counts = behind(waiting)
        while index < len(waiting) and not self._is_over(window):
            task = waiting[index]
            task_id = task.submitted.task
            if task_id in self.gone:
                index += 1
                continue
            if self.placed and self._is_hidden(task, window):
                hidden.append(task)
                index += 1
                continue
            offer = self._bid(task, counts[index])
            if offer is None:
                index += 1
                continue
            result = self._try(task, offer, counts[index])
            if isinstance(result, Release):
                jumper = self._warm_instead(waiting, index, result, counts)
                if jumper is not None:
                    self._take(*jumper)
                    continue  # the head again, with the machine as it is now
                self._take(task, result, counts[index])
                if self._overtaken(waiting, index, task):
                    waiting = [*waiting[: index + 1], *self._resorted(waiting[index + 1 :])]
                    counts = behind(waiting)
            else:
                self.placed[self.bids.machines_for(task)] += 1
                self.holds[task_id], self.starts[task_id] = result.reason, result.wait_s
                self.wanted[task_id] = (result.offer.model, result.offer.worker)
                self._place(task, result.offer)
            index += 1
        if explain:
            self._rest([*hidden, *waiting[index:]], index - len(hidden))
            self.starts |= starts_behind_limits(self, waiting)
        return Plan(tuple(self.releases), self.holds, self.starts, self.bypasses, self.overtaken_s, self.wanted)

    def _is_over(self, window: int) -> bool:
        """Nothing more can leave, or the window is full: what stands behind it is of interest to a free machine only."""
        return len(self.releases) >= RELEASES_MOST or (not self.free and self.placed.total() >= window)

    def _is_hidden(self, task: Task, window: int) -> bool:
        """Behind a window of those who may go to the same machines; or behind one of all, and nobody is free for it."""
        machines = self.bids.machines_for(task)
        return self.placed[machines] >= window or (self.placed.total() >= window and self.free.isdisjoint(machines))

    def _bid(self, task: Task, behind_it: int) -> Offer | None:
        """Its best offer; None, with the reason noted, where it cannot be placed at all and so does not count for the window."""
        reason = self.bids.not_yet(task, self.now) or self._full_for(task)
        if reason is None:
            offer = self.bids.best(task, behind_it, self.counts)
            if offer is not None:
                return offer
            reason = self.bids.full(task, self.counts) or nobody(task, self.state, self.live, self.now, self.outlook)
        self.holds[task.submitted.task], self.starts[task.submitted.task] = reason, None
        return None

    def _full_for(self, task: Task) -> str | None:
        return self.counts.full(f"client:{task.submitted.client}")

    def _try(self, task: Task, offer: Offer, behind_it: int) -> Release | Held:
        """Its release, if the machine that it wants has a credit; else why it waits, and how long."""
        refused: Refused | None = None
        without: frozenset[str] = frozenset()
        found: Offer | None = offer
        while found is not None and found.free:
            result = self.releasing.release(task, found, behind_it, self.bids.may_serve(task, found.model))
            if isinstance(result, Release):
                return result
            refused = refused or result
            without |= {found.worker}
            found = self.bids.best(task, behind_it, self.counts, without)
        if refused is not None:
            return Held(refused.reason, found.wait_s if found else None, found or offer)
        somebody_free = self.bids.somebody_free(task, self.counts)
        return Held(why_held(offer, self.machines[offer.worker].name, somebody_free), offer.wait_s, offer)

    def _warm_instead(
        self, waiting: list[Task], index: int, head: Release, counts: list[int]
    ) -> tuple[Task, Release, int] | None:
        """Before a machine swaps models: one of the next tasks that finds its model warm there, and wants that machine itself."""
        if not head.offer.load_s:
            return None
        jumped: list[Task] = []
        looked = 0
        for at in range(index, len(waiting)):
            task = waiting[at]
            if task.submitted.task in self.gone:
                continue
            if at > index:
                looked += 1
                if looked > LOOK_AHEAD:
                    return None
                offer = self._peek(task, counts[at])
                if offer is not None and offer.worker == head.expected and offer.free and not offer.load_s:
                    may_serve = self.bids.may_serve(task, offer.model)
                    release = self.releasing.release(task, offer, counts[at], may_serve)
                    if isinstance(release, Release):
                        for passed in jumped:
                            name = passed.submitted.task
                            self.bypasses[name] = self.bypasses.get(name, 0) + 1
                        return task, release, counts[at]
            if not self._may_be_jumped(task):
                return None
            jumped.append(task)
        return None

    def _peek(self, task: Task, behind_it: int) -> Offer | None:
        if self.bids.not_yet(task, self.now) is not None or self._full_for(task) is not None:
            return None
        return self.bids.best(task, behind_it, self.counts)

    def _may_be_jumped(self, task: Task) -> bool:
        name = task.submitted.task
        before = self.live.waits.get(name) or Wait()
        young = self.now - self.live.seen.get(name, self.now) < BYPASS_AGE_MOST_S
        return young and before.bypasses + self.bypasses.get(name, 0) < BYPASSES_MOST

    def _take(self, task: Task, release: Release, behind_it: int) -> None:
        draft = self.live.drafts.get(release.task)
        first = task.choice or (draft.choice if draft is not None else None)
        release = recorded(release, first, self.bids.all(task, behind_it, self.counts), self.machines)
        machine = self.machines[release.expected]
        machine.free -= 1
        if not machine.free:
            self.free.discard(release.expected)
        self.counts.take(release.permits)
        self.releases.append(release)
        self.gone.add(task.submitted.task)
        self._place(task, release.offer)

    def _place(self, task: Task, offer: Offer) -> None:
        machine, info = self.machines[offer.worker], self.bids.infos[offer.worker]
        speed = self.bids.speed(offer.model, task.submitted.domain.label, offer.worker)
        machine.place(offer.model, offer.parts, speed.slowdown, {name: m.bytes for name, m in info.items()})
        self.bids.moved()

    def _overtaken(self, waiting: list[Task], index: int, task: Task) -> bool:
        """Note whom this release passes for being shorter; whether somebody's budget is used up by it."""
        mine, rank, seq = service_of(task, self.live), task.submitted.urgency, task.seq
        used_up = False
        for at in range(index + 1, len(waiting)):
            later = waiting[at]
            if later.seq < seq and later.submitted.urgency == rank and later.submitted.task not in self.gone:
                name = later.submitted.task
                before = self.live.waits.get(name) or Wait()
                total = self.overtaken_s.get(name, 0.0) + mine
                self.overtaken_s[name] = total
                used_up |= before.overtaken_s + total >= OVERTAKEN_MOST_S
        return used_up

    def _resorted(self, rest: list[Task]) -> list[Task]:
        """By the keys as they are with what this pass has let pass."""
        spent = {name for name, s in self.overtaken_s.items() if self._spent(name, s)}
        return in_order(rest, self.live, self.outlook.order_k, spent)

    def _spent(self, name: str, more_s: float) -> bool:
        return (self.live.waits.get(name) or Wait()).overtaken_s + more_s >= OVERTAKEN_MOST_S

    def _rest(self, rest: list[Task], index: int) -> None:
        """Behind the window: what holds each, and when its turn may come if the fleet goes on as it goes."""
        slots = sum(machine.slots for machine in self.machines.values() if machine.heard) or 1
        start = max([s for s in self.starts.values() if s is not None], default=0.0)
        for task in rest:
            name = task.submitted.task
            if name in self.gone:
                continue
            reason = self.bids.not_yet(task, self.now) or self._full_for(task) or self.bids.full(task, self.counts)
            if reason is None and not self.bids.anybody(task):
                reason = nobody(task, self.state, self.live, self.now, self.outlook)
            if reason is None:
                start += service_of(task, self.live) / slots
            self.starts[name] = None if reason else start
            self.holds[name] = (
                reason or f"busy: behind the first {index} tasks, every machine that could answer is busy"
            )
