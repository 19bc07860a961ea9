"""The debts as of now, worked out without keeping anybody waiting.

Answers "what is owed?" for a loop that must also give way within a moment: in a fleet of many models on many machines the debts
are seconds' work, so they are worked out a little at a time, and not again before some time has passed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from services.benchmarker.debts import Debt, thinking
from services.benchmarker.ground import Ground

OWED_US = 5_000_000
"""How late a change is seen that only heartbeats tell: a model loaded, a machine awake again."""
SLICE_S = 0.02
"""Of thinking in one go: less than half of the time within which unasked work gives way."""
PAUSES = 4.0
"""As long as it took, and so many times more [200 machines of 40 models in 8 domains: 72,000 debts in 3 s]. What took no slice is
worked out whenever something has changed."""
DAY_S = 86_400.0


class Owing:
    """``between`` is called between two slices."""

    def __init__(self, ground: Ground, between: Callable[[], None] = lambda: None) -> None:
        self._ground, self._between = ground, between
        self._debts: tuple[Debt, ...] = ()
        self._key = (-1, -1, -1)
        self._again_s = 0.0
        self._looking = asyncio.Lock()

    async def look(self, facts: int) -> tuple[Debt, ...]:
        """Best first. ``facts`` changes with the fleet; nothing else is looked at anew while only time has passed."""
        async with self._looking:
            ground, began_s = self._ground, time.monotonic()
            now_us = ground.now_us()
            key = (facts, ground.stats.version, now_us // OWED_US)
            if key != self._key and began_s >= self._again_s:
                self._debts, self._key = await self._work_out(now_us), key
                took_s = time.monotonic() - began_s
                self._again_s = time.monotonic() + PAUSES * took_s if took_s > SLICE_S else 0.0
            return self._debts

    async def _work_out(self, now_us: int) -> tuple[Debt, ...]:
        ground = self._ground
        stale_s = ground.settings.stale_days * DAY_S
        found, until_s = None, time.monotonic() + SLICE_S
        for step in thinking(ground.fleet, ground.stats, ground.fleet.use, now_us, stale_s=stale_s):
            found = step or found
            if time.monotonic() >= until_s:
                await asyncio.sleep(0)
                self._between()
                until_s = time.monotonic() + SLICE_S
        return found or ()
