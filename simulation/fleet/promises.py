"""What the planner promises of order, counted again from the log alone. Pure.

Answers "who went before whom, was that allowed, and is it said why?". The queue is rebuilt from what was stored: arrivals,
classes, E[S] of the decisions, releases. Nothing of the planner is used, so that one mistake cannot hide in both.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from schemas.events import AnyEvent, TaskReleased, TaskRouted, TaskSubmitted

OFFSET_S = {"interactive": 0.0, "batch": 120.0, "background": 600.0}
OVERTAKEN_MOST_S = 60.0
BYPASSES_MOST = 4
PULSE_S = 1.0
"""Holds are counted with each pulse, so a wait of less than one has no reason in the log."""


@dataclass
class Waiting:
    """A task in the queue. ``passed_s``: E[S] of later arrivals of its class that went first for being shorter."""

    task: str
    seq: int
    at_s: float
    urgency: str
    service_s: float | None = None
    passed_s: float = 0.0
    longest_s: float = 0.0
    inversions: int = 0

    def key(self, k: float) -> float:
        base = self.at_s + OFFSET_S[self.urgency]
        return base if self.passed_s >= OVERTAKEN_MOST_S else base + k * (self.service_s or 0.0)


@dataclass
class Order:
    """``broken`` is empty when every promise of order was kept."""

    broken: list[str] = field(default_factory=list)
    bypasses_most: int = 0
    passed_most_s: float = 0.0
    inversions: int = 0
    jumps: int = 0
    releases: int = 0


def check_order(log: list[tuple[AnyEvent, int]], *, k: float = 1.0) -> Order:
    """``log`` is (event, moment of storage in microseconds) in the stream's order; ``k`` is the planner's weight of E[S]."""
    order, queue = Order(), dict[str, Waiting]()
    for seq, (event, at_us) in enumerate(log):
        match event:
            case TaskSubmitted():
                queue[event.task] = Waiting(event.task, seq, at_us / 1e6, event.urgency)
            case TaskRouted() if event.task in queue:
                queue[event.task].service_s = event.service_s
            case TaskReleased() if event.task in queue:
                _release(order, queue, event, k, at_us / 1e6)
            case _:
                pass
    return order


def _release(order: Order, queue: dict[str, Waiting], event: TaskReleased, k: float, now_s: float) -> None:
    mine = queue.pop(event.task)
    order.releases += 1
    order.bypasses_most = max(order.bypasses_most, event.bypasses)
    if event.bypasses > BYPASSES_MOST:
        order.broken.append(f"{event.task} was jumped {event.bypasses} times, {BYPASSES_MOST} are allowed")
    if mine.inversions and not (event.held_s or event.bypasses) and now_s - mine.at_s > PULSE_S:
        order.broken.append(
            f"{event.task} was passed by {mine.inversions} and its release does not say why it was held"
        )
    key, took_s = mine.key(k), mine.service_s or 0.0
    for other in queue.values():
        if other.service_s is None:
            continue
        if other.key(k) < key:
            other.inversions += 1
            order.inversions += 1
        elif other.seq < mine.seq and other.urgency == mine.urgency:
            other.passed_s += took_s
            other.longest_s = max(other.longest_s, took_s)
            order.passed_most_s = max(order.passed_most_s, other.passed_s)
            if other.passed_s > OVERTAKEN_MOST_S + other.longest_s + 1e-6:
                order.broken.append(f"{other.task} was overtaken by {other.passed_s:.1f} fleet-seconds of shorter work")
