"""What the router heard but no log holds: credits, loads, tokens, items, cancel requests, suspects.

Answers "who is there now, and who is silent?". All times are heard time (``heard``); nothing here is read from the past, and
losing all of it costs only fresh deadlines.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from schemas.events import Credit, TaskRouted, WorkerLoad
from services.router.dispatch.glance import Glance, glance_at
from services.router.dispatch.state import Key, RouterState

ALIVE_S = 6.0
"""A worker may serve a group's release when heard within its pull's expiry (5 s) + 1 s."""
INTERVAL_S = 5.0
"""Between heartbeats, where none said so yet."""
FRESH_S = 15.0
"""An older load is unknown load: three missed heartbeats."""
GONE_S = 30.0
"""A model that only machines silent for so long hold does not keep a task that may take another model."""
LEASE_S = 30.0
"""A started attempt that nobody mentioned for so long is lost."""


@dataclass
class Heard:
    """One worker's last words and when they came. ``room`` is the most (bytes, models) that it ever said to have loaded at once:
    what fits is learned from the backend, which knows it. ``used``: model -> when an attempt of ours last ran with it there."""

    boot: str
    credit: Credit | None = None
    credit_at: float = 0.0
    heard_at: float = 0.0
    load: WorkerLoad | None = None
    load_at: float = 0.0
    suspect: bool = False
    room: tuple[int, int] = (0, 1)
    roomy: WorkerLoad | None = None
    used: dict[str, float] = field(default_factory=dict)

    def used_lately(self, now: float) -> list[str]:
        """The models that ran after its last load was looked at, which may be an interval before it was said; latest last. Of a
        machine that stopped saying it no more than of one that says it now: silence must not keep models in memory."""
        says_it = self.load is not None and now - self.load_at <= FRESH_S
        since = (self.load_at if says_it else now) - (self.load.interval_s if self.load is not None else INTERVAL_S)
        return sorted((model for model, at in self.used.items() if at >= since), key=lambda model: self.used[model])

    def learn_room(self, sizes: dict[str, int]) -> None:
        """From the present load, once."""
        self.roomy = self.load
        resident = (self.load.resident if self.load is not None else None) or ()
        together = sum(sizes.get(model, 0) for model in resident)
        self.room = max(self.room[0], together), max(self.room[1], len(resident))


@dataclass
class Lease:
    """A started attempt's. ``boot`` is the one that claimed it; ``since`` is when this router first saw the start."""

    boot: str | None
    since: float
    heard_at: float


class Promise(msgspec.Struct, frozen=True):
    """What a release on its way takes, before the fold shows it: a credit, permits, and so many seconds of its machine."""

    task: str
    worker: str
    model: str
    permits: tuple[str, ...]
    service_s: float


@dataclass
class Wait:
    """A waiting task's: how long it was held under which reason, how many later ones a look-ahead put first, and the E[S] of the
    later arrivals of its class that went first because they are shorter; since when nobody is there for it, and when somebody was
    woken for it (``absent``)."""

    held_s: dict[str, float] = field(default_factory=dict)
    bypasses: int = 0
    overtaken_s: float = 0.0
    absent_code: str = ""
    absent_since: float | None = None
    woken_at: float | None = None


@dataclass
class Live:
    """``items``: where an attempt's item lies and since when. ``pending``: message ids on their way, each with the sequence
    it was stored at, or None while unknown; the engine does not repeat what is pending. ``drafts``: decisions that are on their
    way to the log, so that a task need not wait for that before its release follows. ``bodies``: tasks whose text is still on
    its way; they are not released. ``boots``: each worker's boot as its last report has it. ``unanswered``: why nobody can
    answer a task yet. ``unheld``: consumers without holders, and since when. ``woken``: who was last told when to wake;
    ``noted_at``: when ``absent`` last took down who has nobody. ``promised``: releases by message id; see ``promises``."""

    workers: dict[str, Heard] = field(default_factory=dict)
    boots: dict[str, str] = field(default_factory=dict)
    old_boots: set[str] = field(default_factory=set)
    leases: dict[Key, Lease] = field(default_factory=dict)
    items: dict[Key, tuple[int, float]] = field(default_factory=dict)
    pending: dict[str, int | None] = field(default_factory=dict)
    cancels: dict[str, str] = field(default_factory=dict)
    revoked: set[Key] = field(default_factory=set)
    strangers: dict[Key, float] = field(default_factory=dict)
    told: dict[tuple[str, str, int], float] = field(default_factory=dict)
    retry_at: dict[tuple[str, int], float] = field(default_factory=dict)
    confirmed: dict[str, int] = field(default_factory=dict)
    unheld: dict[str, float] = field(default_factory=dict)
    greeted: dict[str, tuple[float, int]] = field(default_factory=dict)
    waits: dict[str, Wait] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)
    drafts: dict[str, TaskRouted] = field(default_factory=dict)
    bodies: set[str] = field(default_factory=set)
    unanswered: dict[str, str] = field(default_factory=dict)
    promised: dict[str, Promise] = field(default_factory=dict)
    woken: dict[str, float] = field(default_factory=dict)
    noted_at: float = 0.0

    def hear_credit(self, credit: Credit, now: float) -> None:
        """A worker's absolute word. An older one of the same boot, or one of a former boot, changes nothing."""
        heard = self._hear(credit.worker, credit.boot, now)
        if heard is None or (heard.credit is not None and credit.seq <= heard.credit.seq):
            return
        heard.credit, heard.credit_at, heard.suspect = credit, now, False
        for running in credit.running:
            lease = self.leases.get((running.task, running.attempt))
            if lease is not None and lease.boot == credit.boot:
                lease.heard_at = now

    def hear_load(self, load: WorkerLoad, now: float) -> None:
        """A heartbeat: the load, and the credit inside it."""
        heard = self._hear(load.worker, load.boot, now)
        if heard is not None:
            heard.load, heard.load_at = load, now
        if load.credit is not None:
            self.hear_credit(load.credit, now)

    def hear_token(self, key: Key, now: float) -> None:
        if key in self.leases:
            self.leases[key].heard_at = now

    def lease(self, key: Key, boot: str | None, now: float) -> Lease:
        """Begins when the router first sees the start."""
        return self.leases.setdefault(key, Lease(boot, now, now))

    def note_use(self, glance: Glance, now: float) -> None:
        """What runs is in memory, and stays there when its attempt has ended: a load says so an interval later or two."""
        for worker, model in {(attempt.worker, attempt.model) for _, attempt in glance.started}:
            if worker in self.workers:
                self.workers[worker].used[model] = now

    def note_seen(self, state: RouterState, now: float) -> None:
        """Since when each open task is known here."""
        for task in state.tasks.keys() - self.seen.keys():
            self.seen[task] = now

    def stored(self, msg_id: str, seq: int) -> None:
        """A publish was stored (by us or by somebody else) at ``seq``; it stays pending until the fold has passed that."""
        if msg_id in self.pending:
            self.pending[msg_id] = seq

    def not_stored(self, msg_id: str) -> None:
        """A publish failed or its fate is unknown: it may be tried again under the same id."""
        self.pending.pop(msg_id, None)

    def folded(self, position: int) -> None:
        """The fold has reached ``position``: what was stored up to there is no longer pending."""
        if self.pending:
            for msg_id in [m for m, seq in self.pending.items() if seq is not None and seq <= position]:
                del self.pending[msg_id]

    def promises(self) -> list[Promise]:
        """Of releases on their way: until the fold has passed them, or nobody stored them."""
        if self.promised:
            self.promised = {key: promise for key, promise in self.promised.items() if key in self.pending}
        return list(self.promised.values())

    def tidy(self, state: RouterState, glance: Glance | None = None) -> None:
        """Learn which boots the log knows, and forget what was kept for tasks and attempts that have ended."""
        for worker, record in state.workers.items():
            if self.boots.get(worker) != record.report.boot:
                self._reported(worker, record.report.boot)
            if (heard := self.workers.get(worker)) is not None and heard.load is not heard.roomy:
                heard.learn_room({m.name: m.bytes or 0 for m in record.report.models})
        tasks, running = state.tasks, (glance or glance_at(state)).live
        for task in [t for t in self.drafts if state.task(t) is not None and _routed(state, t)]:
            del self.drafts[task]
        for task in [t for t in self.cancels if (known := state.task(t)) is not None and known.terminal is not None]:
            del self.cancels[task]
        for task in [t for t in self.unanswered if t in self.drafts or t not in tasks]:
            del self.unanswered[task]
        for task in self.seen.keys() - tasks.keys():
            del self.seen[task]
        for task in self.waits.keys() - tasks.keys():
            del self.waits[task]
        for retry in [r for r in self.retry_at if r[0] not in tasks or r[1] < tasks[r[0]].next_attempt]:
            del self.retry_at[retry]
        for key in self.leases.keys() - running:
            del self.leases[key]
        self.revoked &= running

    def elected(self) -> None:
        """This router decides from now on: all deadlines begin afresh, whatever it had noted in a former epoch."""
        self.items.clear()
        self.leases.clear()
        self.retry_at.clear()

    def _reported(self, worker: str, boot: str) -> None:
        """The log has another boot of ``worker``: that is the present one, whichever messages overtook which."""
        former = self.boots.get(worker)
        self.boots[worker] = boot
        self.old_boots.discard(boot)
        if former is not None:
            self.old_boots.add(former)
            if worker in self.workers and self.workers[worker].boot == former:
                del self.workers[worker]

    def _hear(self, worker: str, boot: str, now: float) -> Heard | None:
        heard = self.workers.get(worker)
        if heard is not None and heard.boot != boot:
            if boot in self.old_boots and boot != self.boots.get(worker):
                return None
            self.old_boots.discard(boot)
            self.old_boots.add(heard.boot)
            heard = None
        if heard is None:
            heard = self.workers[worker] = Heard(boot=boot)
        heard.heard_at = now
        return heard


def _routed(state: RouterState, task: str) -> bool:
    return task not in state.tasks or state.tasks[task].routed_seq is not None
