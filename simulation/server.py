"""A model of JetStream as the field notes measured it: message ids, priorities, ack_wait, deletes, kills and freezes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from schemas.events import AnyEvent
from simulation.kernel import Kernel, Process

ACK_WAIT_S = 30.0


@dataclass
class Item:
    seq: int
    subject: str
    body: Any
    durable: str
    at: float
    deleted: bool = False
    acked: bool = False
    due: float | None = None  # in flight until then
    deliveries: int = 0


@dataclass
class Round:
    """A pull of one item over several consumers: the server ends it with its first delivery."""

    owner: Process
    life: int
    durables: dict[str, int]
    expires: float
    deliver: Callable[[Item], None]
    order: int = 0


@dataclass
class Server:
    kernel: Kernel
    process: Process = field(default_factory=lambda: Process("server"))
    events: list[tuple[str, AnyEvent, float]] = field(default_factory=list)
    ids: dict[str, int] = field(default_factory=dict)
    item_ids: dict[str, int] = field(default_factory=dict)
    items: dict[int, Item] = field(default_factory=dict)
    waiting: list[Item] = field(default_factory=list)
    consumers: set[str] = field(default_factory=set)
    rounds: list[Round] = field(default_factory=list)
    followers: list[Callable[[], None]] = field(default_factory=list)
    answers: set[tuple[str, int]] = field(default_factory=set)
    watch: Callable[[AnyEvent], None] = lambda event: None
    snapshot: tuple[int, bytes] = (0, b"")
    key: tuple[str, int, int] = ("", 0, 0)  # holder, epoch, revision
    last_change: dict[int, tuple[float, bool, float | None]] = field(default_factory=dict)
    _order: int = 0

    def publish(self, event: AnyEvent, msg_id: str) -> tuple[int, AnyEvent]:
        """The sequence and event stored under ``msg_id``: this one, or whoever was first."""
        seq = self.ids.get(msg_id)
        if seq is None:
            self.events.append((msg_id, event, self.kernel.now))
            seq = self.ids[msg_id] = len(self.events)
            self.watch(event)
            for notify in self.followers:
                notify()
        return seq, self.events[seq - 1][1]

    def take(self, router: str, revision: int) -> int:
        """The dispatcher's key by compare-and-set; the epoch, or -1 where somebody was faster."""
        if self.key[2] != revision:
            return -1
        self.key = (router, revision + 1, revision + 1)
        return revision + 1

    def renew(self, router: str, epoch: int) -> bool:
        if self.key[:2] != (router, epoch):
            return False
        self.key = (router, epoch, self.key[2] + 1)
        return True

    def put(self, subject: str, durable: str, body: Any, msg_id: str) -> int:
        seq = self.item_ids.get(msg_id)
        if seq is None:
            seq = self.item_ids[msg_id] = len(self.items) + 1
            item = self.items[seq] = Item(seq, subject, body, durable, self.kernel.now)
            if durable in self.consumers:  # deliver_policy new: earlier items are never pending
                self.waiting.append(item)
                self._serve()
        return seq

    def find(self, subject: str) -> int | None:
        return next((i.seq for i in self.items.values() if i.subject == subject and not i.deleted), None)

    def delete(self, seq: int) -> None:
        item = self.items[seq]
        item.deleted = True
        self.waiting = [i for i in self.waiting if i.seq != seq]

    def arm(self, round: Round) -> int:
        self._order += 1
        round.order = self._order
        self.rounds.append(round)
        self._serve()
        return round.order

    def close(self, orders: list[int]) -> bool:
        """A worker ends its rounds: nothing more is delivered to them."""
        self.rounds = [r for r in self.rounds if r.order not in orders]
        return True

    def ack(self, item: Item, deliveries: int) -> None:
        """Any holder's ack counts, also a late one."""
        self._note(item)
        item.acked, item.due = True, None
        self.waiting = [i for i in self.waiting if i.seq != item.seq]

    def in_progress(self, item: Item) -> None:
        if item.due is not None:
            item.due = self.kernel.now + ACK_WAIT_S

    def tick(self) -> None:
        """Redeliver what nobody acked, drop rounds that expired or whose owner's death was noticed."""
        now = self.kernel.now
        for item in self.items.values():
            if item.due is not None and item.due <= now and not item.acked and not item.deleted:
                item.due = None
                self.waiting.insert(0, item)
        self.rounds = [r for r in self.rounds if r.expires > now and r.owner.alive and r.owner.life == r.life]
        self._serve()

    def kill(self) -> None:
        """kill -9: what was stored stays; pulls are gone; acks and deliveries younger than 0.2 s may be forgotten."""
        self.rounds.clear()
        for seq, (at, acked, due) in self.last_change.items():
            item = self.items[seq]
            if self.kernel.now - at < 0.2 and not item.deleted and self.kernel.random.random() < 0.5:
                item.acked, item.due = acked, due
                if not acked and due is None and item not in self.waiting:
                    self.waiting.append(item)

    def idle(self) -> bool:
        """No item is waiting or in flight."""
        return not self.waiting and not any(
            i.due is not None and not i.acked and not i.deleted for i in self.items.values()
        )

    def _note(self, item: Item) -> None:
        self.last_change[item.seq] = (self.kernel.now, item.acked, item.due)

    def _serve(self) -> None:
        for item in list(self.waiting):
            able = [r for r in self.rounds if item.durable in r.durables]
            if not able:
                continue
            best = min(able, key=lambda r: (r.durables[item.durable], r.order))
            self.rounds.remove(best)
            self.waiting.remove(item)
            self._note(item)
            item.due = self.kernel.now + ACK_WAIT_S
            item.deliveries += 1
            self.kernel.after(self.kernel.delay(), best.owner, best.deliver, item)
