"""The standing pulls: each of the machine's ``Arm`` commands as one round of one item.

Answers "which pulls of ours stand, and what did they bring?". It decides nothing: every round ends in exactly one of
``item_arrived`` and ``disarmed``, after at most one ``armed``. A round that is replaced hands over what it still held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from schemas.errors import BusError
from services.runtime.bus import Bus
from services.runtime.logs import logger
from services.runtime.take import Round, Taken, Taker

log = logger("worker")

EXPIRES_S = 5.0
"""The router counts a worker as there for this long plus one second; priorities are at most this old."""
RECONNECT_S = 1.0
AGAIN_S = 0.05

Groups = Callable[[], list[tuple[str, int]]]


class Rounds:
    """``on_*`` are the machine's methods; ``groups`` gives (durable, priority) in pulling order whenever a round is armed."""

    def __init__(
        self,
        bus: Bus,
        taker: Taker,
        groups: Groups,
        *,
        on_armed: Callable[[int], None],
        on_item: Callable[[int, Taken], None],
        on_disarmed: Callable[[int], None],
    ) -> None:
        self._bus, self._taker, self._groups = bus, taker, groups
        self._on_armed, self._on_item, self._on_disarmed = on_armed, on_item, on_disarmed
        self._standing: dict[int, Round] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._replaced = asyncio.Event()
        self._last: dict[str, int] = {}

    def arm(self, number: int) -> None:
        task = asyncio.create_task(self._run(number), name=f"round {number}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def armed(self) -> dict[str, int]:
        """What every standing pull covers, with the worst priority; while none stands, what the last ones covered."""
        if self._standing:
            rounds = [round_.armed for round_ in self._standing.values()]
            common = set.intersection(*(set(armed) for armed in rounds))
            self._last = {durable: max(armed[durable] for armed in rounds) for durable in sorted(common)}
        return dict(self._last)

    def replace(self) -> None:
        """End the standing rounds now; the machine arms new ones, over the groups of now."""
        self._replaced.set()
        self._replaced = asyncio.Event()

    async def close(self) -> None:
        """Wait until every round has ended and handed over what it held."""
        self.replace()
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _run(self, number: int) -> None:
        replaced = self._replaced
        items: list[Taken] = []
        try:
            round_ = await self._taker.arm(self._groups(), 1, EXPIRES_S)
        except BusError as error:
            log.info("no pull stands", action="not_armed", error=str(error))
            await asyncio.sleep(AGAIN_S)
            await self._bus.wait_connected(RECONNECT_S)
            self._on_disarmed(number)
            return
        self._standing[number] = round_
        try:
            if round_.armed or round_.k == 0:  # k is 0 where the sweep before the pulls already found an item
                self._on_armed(number)
            items = await self._first_items(round_, replaced)
        finally:
            self._standing.pop(number, None)
        if items:
            self._on_item(number, items[0])
        else:
            self._on_disarmed(number)

    async def _first_items(self, round_: Round, replaced: asyncio.Event) -> list[Taken]:
        """What the round brings, until it is over or replaced."""
        items = asyncio.create_task(round_.items())
        watch = asyncio.create_task(replaced.wait())
        try:
            await asyncio.wait([items, watch], return_when=asyncio.FIRST_COMPLETED)
            late = await round_.close()
            return [*await items, *late]
        finally:
            items.cancel()
            watch.cancel()
