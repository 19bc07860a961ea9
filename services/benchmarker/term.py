"""One benchmarker at a time: two would measure twice, and disturb each other.

Answers "is it us?". It keeps a key of the bucket ``router`` as the dispatcher keeps its own; whoever loses it stops what he had
begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from schemas.errors import BusError
from schemas.subjects import BENCHMARKER_KEY
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.election import Election
from services.runtime.logs import logger

log = logger("benchmarker")

RENEW_S, CAMPAIGN_S = 1.0, 0.5

Change = Callable[[], Awaitable[None]]


class Term:
    """``run`` for ever; ``took`` and ``lost`` are awaited at each change. ``ours`` says how it stands."""

    def __init__(self, bus: Bus, who: str, clock: Clock, took: Change, lost: Change) -> None:
        self._election = Election(bus, who, BENCHMARKER_KEY)
        self._clock, self._took, self._lost = clock, took, lost

    @property
    def ours(self) -> bool:
        return self._election.epoch >= 0

    async def run(self) -> None:
        while True:
            try:
                await self._once()
            except BusError as error:
                log.warning("cannot reach the benchmarker's key", action="election_waits", error=str(error))
            await asyncio.sleep(RENEW_S if self.ours else CAMPAIGN_S)

    async def _once(self) -> None:
        if not self.ours:
            if await self._election.campaign(self._clock.monotonic()):
                log.info("benchmarker elected", action="benchmarker_elected", epoch=self._election.epoch)
                await self._took()
        elif not await self._election.renew():
            await self._lost()
