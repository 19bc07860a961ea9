"""A payment of a debt on its way: where its work is at this moment, and when it may ask for more.

Answers "which machines are taken by it, and has each told what others do there?". It never gives up by itself: whoever looks on
(``service``) does.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from services.benchmarker.asking import Result, Work
from services.benchmarker.budget import must_stop, unread
from services.benchmarker.debts import Debt
from services.benchmarker.ground import Ground

LOOK_S = 0.05
READ_MOST_S = 15.0
"""Three heartbeats, one of which tells it."""


@dataclass(eq=False)
class Payment:
    """A debt being paid; ``on`` are the machines that its work is at."""

    debt: Debt
    on: dict[str, int] = field(default_factory=dict)


class Watched:
    """``Asks`` of one payment: it notes where its work is, so that the payment can give way there, and asks a machine with a GPU
    again only when that has told what others do with it."""

    def __init__(self, ground: Ground, payment: Payment) -> None:
        self._ground, self._payment = ground, payment

    async def run(self, work: Work) -> Result:
        on = self._payment.on
        on[work.worker] = on.get(work.worker, 0) + 1
        try:
            if not await self._may_go(work.worker):
                return Result(task="", failure="cancelled: others' use of its GPU cannot be read")
            return await self._ground.asking.run(work)
        finally:
            on[work.worker] -= 1

    async def _may_go(self, worker: str) -> bool:
        """Waits for the reading, and where that forbids it, to be given up."""
        ground = self._ground
        machine, until_us = ground.fleet.machines.get(worker), ground.now_us() + READ_MOST_S * 1e6
        while machine is not None and (
            unread(ground.fleet, machine) or must_stop(ground.fleet, worker, ground.now_us())
        ):
            if ground.now_us() > until_us:
                return False
            await asyncio.sleep(LOOK_S)
        return True
