"""What the router heard but no log holds: credits, loads, tokens, items, cancel requests, suspects.

Answers "who is there now, and who is silent?". All times are heard time (``heard``); nothing here is read from the past, and
losing all of it costs only fresh deadlines.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.events import Credit, TaskRouted, WorkerLoad
from services.router.dispatch.state import Key

ALIVE_S = 6.0
"""A worker may serve a group's release when heard within its pull's expiry (5 s) + 1 s."""
FRESH_S = 15.0
"""An older load is unknown load: three missed heartbeats."""
LEASE_S = 30.0
"""A started attempt that nobody mentioned for so long is lost."""


@dataclass
class Heard:
    """One worker's last words and when they came."""

    boot: str
    credit: Credit | None = None
    credit_at: float = 0.0
    heard_at: float = 0.0
    load: WorkerLoad | None = None
    load_at: float = 0.0
    suspect: bool = False


@dataclass
class Live:
    """``items``: where an attempt's item lies and since when. ``pending``: message ids on their way, each with the sequence
    it was stored at, or None while unknown; the engine does not repeat what is pending. ``drafts``: decisions that are on their
    way to the log, so that a task need not wait for that before its release follows."""

    workers: dict[str, Heard] = field(default_factory=dict)
    old_boots: set[str] = field(default_factory=set)
    leases: dict[Key, float] = field(default_factory=dict)
    items: dict[Key, tuple[int, float]] = field(default_factory=dict)
    pending: dict[str, int | None] = field(default_factory=dict)
    cancels: dict[str, str] = field(default_factory=dict)
    revoked: set[Key] = field(default_factory=set)
    told: dict[tuple[str, str, int], float] = field(default_factory=dict)
    retry_at: dict[tuple[str, int], float] = field(default_factory=dict)
    confirmed: dict[str, int] = field(default_factory=dict)
    greeted: dict[str, float] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)
    drafts: dict[str, TaskRouted] = field(default_factory=dict)

    def hear_credit(self, credit: Credit, now: float) -> None:
        """A worker's absolute word. An older one of the same boot, or one of a former boot, changes nothing."""
        heard = self._hear(credit.worker, credit.boot, now)
        if heard is None or (heard.credit is not None and credit.seq <= heard.credit.seq):
            return
        heard.credit, heard.credit_at, heard.suspect = credit, now, False
        for running in credit.running:
            key = (running.task, running.attempt)
            if key in self.leases:
                self.leases[key] = now

    def hear_load(self, load: WorkerLoad, now: float) -> None:
        """A heartbeat: the load, and the credit inside it."""
        heard = self._hear(load.worker, load.boot, now)
        if heard is not None:
            heard.load, heard.load_at = load, now
        if load.credit is not None:
            self.hear_credit(load.credit, now)

    def hear_token(self, key: Key, now: float) -> None:
        if key in self.leases:
            self.leases[key] = now

    def lease(self, key: Key, now: float) -> float:
        """When the attempt was last heard of; a lease begins when the router first sees the start."""
        return self.leases.setdefault(key, now)

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

    def forget(self, key: Key) -> None:
        """The attempt has ended."""
        self.leases.pop(key, None)

    def _hear(self, worker: str, boot: str, now: float) -> Heard | None:
        heard = self.workers.get(worker)
        if heard is not None and heard.boot != boot:
            if boot in self.old_boots:
                return None
            self.old_boots.add(heard.boot)
            heard = None
        if heard is None:
            heard = self.workers[worker] = Heard(boot=boot)
        heard.heard_at = now
        return heard
