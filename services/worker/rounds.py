"""The standing pulls: each of the machine's ``Arm`` commands as one round of one item.

Answers "which pulls of ours stand, and what did they bring?". It decides nothing: every round ends in exactly one of
``item_arrived`` and ``disarmed``, after at most one ``out`` and one ``armed``. A round that is replaced hands over what it held.
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
SWEEP_EVERY_S = 1.0
"""What already waits in several groups is taken in their order once a second. Before each pull it cost two round trips, 13 ms
of a slot's idle time under load, and found nothing: a task is released where a pull stands."""

Groups = Callable[[], list[tuple[str, int]]]


class Rounds:
    """``on_*`` are the machine's methods; ``groups`` gives (durable, priority) in pulling order whenever a round is armed."""

    def __init__(
        self,
        bus: Bus,
        taker: Taker,
        groups: Groups,
        *,
        on_out: Callable[[int], bool],
        on_armed: Callable[[int], None],
        on_item: Callable[[int, Taken], None],
        on_disarmed: Callable[[int], None],
    ) -> None:
        self._bus, self._taker, self._groups = bus, taker, groups
        self._on_out, self._on_armed, self._on_item, self._on_disarmed = on_out, on_armed, on_item, on_disarmed
        self._standing: dict[int, Round] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._replaced = 0
        self._last: dict[str, int] = {}
        self._swept_at = -SWEEP_EVERY_S

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
        self._replaced += 1
        for round_ in self._standing.values():
            round_.interrupt()

    async def close(self) -> None:
        """Wait until every round has ended and handed over what it held."""
        self.replace()
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def _run(self, number: int) -> None:
        replaced = self._replaced
        items: list[Taken] = []
        try:
            round_ = await self._taker.arm(self._groups(), 1, EXPIRES_S, sweep=self._is_time_to_sweep(), fence=False)
        except BusError as error:
            log.info("no pull stands", action="not_armed", error=str(error))
            await asyncio.sleep(AGAIN_S)
            await self._bus.wait_connected(RECONNECT_S)
            self._on_disarmed(number)
            return
        self._standing[number] = round_
        if replaced != self._replaced:
            round_.interrupt()
        try:
            await self._stands(number, round_)
            items = await round_.items()
            items += await round_.close()
        finally:
            self._standing.pop(number, None)
        if items:
            self._on_item(number, items[0])
        else:
            self._on_disarmed(number)

    async def _stands(self, number: int, round_: Round) -> None:
        """Say so, at once where an end follows the pulls or the sweep before them found an item (k is 0 then)."""
        if round_.k == 0:
            self._on_armed(number)
        elif round_.armed and not self._on_out(number):
            await self._taker.prove(round_)
            if round_.armed:
                self._on_armed(number)

    def _is_time_to_sweep(self) -> bool:
        now = asyncio.get_running_loop().time()
        is_time = now - self._swept_at >= SWEEP_EVERY_S
        if is_time:
            self._swept_at = now
        return is_time
