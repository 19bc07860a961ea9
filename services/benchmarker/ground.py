"""What everything in the benchmarker stands on: the fleet as folded, the statistics, the way to ask, the time.

Answers "what may I look at, and how do I ask?" for those who pay debts and those who answer demands. It decides nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from nats.aio.msg import Msg

from schemas.statistics import Statistics
from services.benchmarker.asking import Asking, Asks
from services.benchmarker.debts import Debt
from services.benchmarker.state import Fleet
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.settings import Benchmarker as BenchmarkerSettings


@dataclass
class Ground:
    """``now_us`` is the server's time, as far as this process knows it: what facts and loads are stamped with."""

    bus: Bus
    asking: Asking
    clock: Clock
    settings: BenchmarkerSettings
    fleet: Fleet = field(default_factory=Fleet)
    stats: Statistics = field(default_factory=Statistics)
    ahead_us: int = 0
    demands: set[asyncio.Task[None]] = field(default_factory=set)

    def now_us(self) -> int:
        return int(self.clock.monotonic() * 1e6) + self.ahead_us

    @contextmanager
    def demanded(self) -> Iterator[None]:
        """Around a task that does what somebody waits for: nothing is measured unasked meanwhile, and it ends with us."""
        task = asyncio.current_task()
        assert task is not None
        self.demands.add(task)
        try:
            yield
        finally:
            self.demands.discard(task)


Pay = Callable[[Debt, Asks], Awaitable[bool]]
"""Pays one debt; cancelled when real work waits. What it learns is in the log; False says that nobody could be asked at all."""
Answer = Callable[[Msg], Awaitable[None]]
"""Answers one demand on a subject of ``rpc.benchmarker.*``; an error in it is logged."""
