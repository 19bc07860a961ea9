"""Virtual time, processes that die and freeze, and a network that delays, re-orders and loses. One seed, one history."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Process:
    """Something that can be killed (``life`` changes: what was meant for the old life is dropped) or paused (it waits)."""

    name: str
    alive: bool = True
    paused: bool = False
    life: int = 0
    inbox: list[tuple[Callable[..., None], tuple[Any, ...]]] = field(default_factory=list)


class Kernel:
    """The event loop. ``now`` is virtual seconds; nothing here knows the real clock."""

    def __init__(self, seed: int) -> None:
        self.now = 0.0
        self.random = random.Random(seed)
        self._heap: list[tuple[float, int, Process | None, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = 0
        self.steps = 0

    def after(self, delay: float, process: Process | None, call: Callable[..., None], *args: Any) -> None:
        """Call in ``delay`` seconds inside ``process``, if it is still the same life then; a paused one gets it later."""
        self._order += 1
        life = process.life if process else 0
        heapq.heappush(self._heap, (self.now + delay, self._order, process, life, call, args))

    def run(self, until: float, stop: Callable[[], bool]) -> None:
        while self._heap and self._heap[0][0] <= until:
            self.now, _, process, life, call, args = heapq.heappop(self._heap)
            self.steps += 1
            if process is not None:
                if not process.alive or process.life != life:
                    continue
                if process.paused:
                    process.inbox.append((call, args))
                    continue
            call(*args)
            if self.steps % 64 == 0 and stop():
                return

    def kill(self, process: Process) -> None:
        process.alive, process.paused = False, False
        process.life += 1
        process.inbox.clear()

    def revive(self, process: Process) -> None:
        process.alive = True

    def pause(self, process: Process) -> None:
        process.paused = process.alive

    def resume(self, process: Process) -> None:
        """What waited happens now, in the order in which it came."""
        if not process.paused:
            return
        process.paused = False
        waiting, process.inbox = process.inbox, []
        for call, args in waiting:
            self.after(0.0, process, call, *args)

    def delay(self) -> float:
        """One way over the network: mostly under a millisecond, now and then 50 ms, which re-orders."""
        return self.random.random() * (0.05 if self.random.random() < 0.03 else 0.001)

    def lost(self, share: float = 0.02) -> bool:
        """Whether a core (unstored) message gets lost."""
        return self.random.random() < share
