"""Take at most k work items from many consumers at once, best group first.

Answers "what is there for me to do?". One subscription whose limit of k the *server* enforces, one standing pull for each
consumer: no item ever has to be given back. The client keeps its own subscription unlimited [nats-py also counts a 503, which
the server does not: the next task was lost]. Each pull has its own reply token, so that a refusal names its group. It never
retries an item and never acknowledges one by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cache

import msgspec
from nats.errors import Error as NatsError

from schemas.errors import BusError
from schemas.streams import PRIORITY_GROUP, SECOND_NS
from services.runtime.bus import Bus
from services.runtime.logs import logger
from services.runtime.stored import Headers, parse_ack_reply
from services.runtime.wire import Arrived

log = logger("take")

Group = tuple[str, int]
"""A consumer's durable name and the pull's priority, 0 best to 9."""

SWEEP_S = 2.0
REST_S = 1.0
"""How long a consumer that refused a pull is left alone, and how long a round with nothing armed lasts."""
SWEPT_MOST = 1_000_000
"""A sweep's subscription is ended by hand; its pulls bring one message each."""
GRACE_S = 0.5
"""A pull that the server has not ended this long after its time is gone."""
FENCE_S = 60.0
"""A frozen server may still hand out an item before it sees the end of a round; nats-py finds it dead after 15 s."""


class Taken:
    """A work item in hand. ``deliveries`` counts put-backs too, so more than 1 does not mean that somebody ran it."""

    def __init__(self, bus: Bus, message: Arrived) -> None:
        self._bus, self._reply = bus, message.reply.decode()
        reply = parse_ack_reply(self._reply)
        self.subject, self.data = message.subject.decode(), message.data
        self.headers: Headers | None = message.headers
        self.deliveries = reply.deliveries
        self.stream_seq = reply.stream_seq
        self.at_us = reply.at_us

    async def ack(self) -> bool:
        """Done with it, confirmed by the server, over reconnects. False where the consumer is gone: nothing is left to ack."""
        return await self._confirm(b"+ACK")

    async def term(self, reason: str) -> bool:
        """Never deliver it again."""
        return await self._confirm(b"+TERM " + reason.encode())

    async def in_progress(self) -> bool:
        """Another ``ack_wait`` of 30 s, please. False while disconnected."""
        return await self._bus.send(self._reply, b"+WPI")

    async def _confirm(self, word: bytes) -> bool:
        try:
            await self._bus.request(self._reply, word, timeout_s=10.0, once=False)
        except BusError as error:
            log.warning("an ack got no answer", action="ack_unanswered", subject=self.subject, error=str(error))
            return False
        return True

    def __repr__(self) -> str:
        return f"Taken({self.subject!r}, seq {self.stream_seq}, deliveries {self.deliveries})"


class Round:
    """Up to ``k`` items from pulls that are out. Made by ``Taker.arm``; always close it."""

    def __init__(self, taker: Taker, groups: Sequence[Group], k: int, expires_s: float) -> None:
        self.armed: dict[str, int] = dict(groups)
        """Durable -> priority of each pull that stands, as far as the server has said."""
        self.k = k
        self._taker = taker
        self._durables = [durable for durable, _ in groups]
        self._ends_at = asyncio.get_running_loop().time() + expires_s + GRACE_S
        self._items: list[Taken] = []
        self._used = 0
        self._over = False
        self._changed = asyncio.Event()
        self._sid: int | None = None

    async def items(self) -> list[Taken]:
        """The next items, at least one; an empty list once the round is over. Nothing stays behind but what ``close`` returns."""
        loop = asyncio.get_running_loop()
        while not self._items and not self._over:
            ends_at = self._ends_at if self.armed else min(self._ends_at, loop.time() + REST_S)
            self._changed.clear()
            try:
                async with asyncio.timeout_at(ends_at):
                    await self._changed.wait()
            except TimeoutError:
                self._over = True
        return self._hand_over()

    def interrupt(self) -> None:
        """``items`` returns what there is, at once; ``close`` has still to be called."""
        self._over = True
        self._changed.set()

    async def close(self) -> list[Taken]:
        """End the pulls; whatever the server handed out until then comes back. No later item can reach this round."""
        await self._taker.end(self)
        return self._hand_over()

    def _hand_over(self) -> list[Taken]:
        items, self._items = self._items, []
        return items

    def _arrived(self, message: Arrived) -> None:
        status = _status(message)
        if status is None:
            self._used += 1
            self._items.append(Taken(self._taker.bus, message))
        else:
            self._refused(message, status)
        if self._used >= self.k:
            self._over = True
        self._changed.set()

    def _refused(self, message: Arrived, status: str) -> None:
        """503: no such consumer, and the server did not count it. Every other status has used up one of k."""
        durable = self._durables[int(message.subject.rpartition(b".")[2])]
        if status in ("404", "408"):
            self._used += 1
            self._over = True  # all pulls of a round end together
            return
        self.armed.pop(durable, None)
        if status != "503":
            self._used += 1
            self._taker.rest(durable)
        reason = "" if message.headers is None else message.headers.get("Description", "")
        log.info("a pull was refused", action="pull_refused", consumer=durable, status=status, reason=reason)


class Taker:
    """One per process. Rounds may overlap; each is bounded by its own k."""

    def __init__(self, bus: Bus, *, stream: str = "TASKS") -> None:
        self.bus = bus
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}."
        self._rounds: set[Round] = set()
        self._resting: dict[str, float] = {}
        bus.on_disconnect(self._cut)

    async def close(self) -> list[Taken]:
        """Ends every open round; returns what they still held."""
        self.bus.off(self._cut)
        return [item for round_ in list(self._rounds) for item in await round_.close()]

    async def arm(
        self, groups: Sequence[Group], k: int, expires_s: float, *, sweep: bool = True, fence: bool = True
    ) -> Round:
        """Put the pulls out, best group first. When it returns, the server knows each of them: only now may a credit be sent.
        Without ``fence`` they are only on their way then, before whatever this connection sends next; ``prove`` waits for them.

        ``sweep`` first takes what already waits, strictly in the order of ``groups``. A consumer that does not exist is left
        out of ``armed`` and harms nothing. Raises BusError while disconnected.
        """
        if k < 1:
            raise ValueError(f"a round needs room for at least one item, not {k}")
        if not self.bus.connected:
            raise BusError("cannot arm pulls while disconnected; wait_connected() first")
        now = asyncio.get_running_loop().time()
        groups = [group for group in groups if self._resting.get(group[0], 0.0) <= now]
        swept = await self._sweep(groups, k) if sweep and len(groups) > 1 else []
        round_ = Round(self, groups, k - len(swept), expires_s)
        round_._items += swept
        if round_.k == 0:
            round_._over = True
            round_.armed.clear()
            return round_
        generation = self.bus.generation
        self._rounds.add(round_)
        try:
            await self._put_out(round_, groups, expires_s)
            if (fence and not await self.bus.fence()) or generation != self.bus.generation:
                self._drop(round_)
        except NatsError as error:
            self._drop(round_)
            raise BusError(f"cannot arm pulls: {error!r}") from error
        return round_

    async def prove(self, round_: Round) -> None:
        """Until the server knows the pulls, and has named those that it refused; ``_cut`` drops a round that lost them."""
        if not await self.bus.fence():
            self._drop(round_)

    async def take(
        self, groups: Sequence[Group], k: int, expires_s: float = 5.0, *,
        on_armed: Callable[[dict[str, int]], Awaitable[None]] | None = None, sweep: bool = True,
    ) -> list[Taken]:  # fmt: skip
        """One whole round: at most ``k`` items, none if there were none for ``expires_s``."""
        round_ = await self.arm(groups, k, expires_s, sweep=sweep)
        items: list[Taken] = []
        try:
            if on_armed is not None:
                await on_armed(dict(round_.armed))
            items += await round_.items()
        finally:
            items += await round_.close()
        return items

    def rest(self, durable: str) -> None:
        """Leave a consumer alone for a second: asking again at once would be refused again, and use up the next round."""
        self._resting[durable] = asyncio.get_running_loop().time() + REST_S

    async def end(self, round_: Round) -> None:
        if round_ not in self._rounds:
            return
        if round_._sid is not None and round_._used < round_.k:
            self.bus.line.hush(round_._sid)
            await self.bus.fence(FENCE_S)  # whatever the server had sent by then has arrived
        self._drop(round_)

    async def _put_out(self, round_: Round, groups: Sequence[Group], expires_s: float) -> None:
        inbox = self.bus.nc.new_inbox()
        round_._sid = self.bus.line.hear(f"{inbox}.*", round_._arrived, round_.k)
        for index, (durable, priority) in enumerate(groups):
            await self.bus.line.say(self._next + durable, _pull(round_.k, priority, expires_s), f"{inbox}.{index}")

    async def _sweep(self, groups: Sequence[Group], k: int) -> list[Taken]:
        """One item at a time, so that never more than asked for can be on its way."""
        inbox = self.bus.nc.new_inbox()
        arrived: asyncio.Queue[Arrived] = asyncio.Queue()
        sid = self.bus.line.hear(inbox, arrived.put_nowait, SWEPT_MOST)
        messages: list[Arrived] = []
        answered = True
        for durable, priority in groups:
            while answered and len(messages) < k:
                await self.bus.line.say(self._next + durable, _pull(1, priority, None), inbox)
                message = await _within(arrived.get(), SWEEP_S)
                answered = message is not None
                if message is None or _status(message) is not None:
                    break
                messages.append(message)
        self.bus.line.hush(sid)
        if not answered:
            await self.bus.fence(FENCE_S)
            messages += [arrived.get_nowait() for _ in range(arrived.qsize())]
        self.bus.line.unhear(sid)
        return [Taken(self.bus, message) for message in messages if _status(message) is None]

    def _cut(self) -> None:
        """The connection is lost: nats-py would subscribe again, without the limit [2 items for one slot, 4 of 5 times]."""
        for round_ in list(self._rounds):
            self._drop(round_)

    def _drop(self, round_: Round) -> None:
        self._rounds.discard(round_)
        if round_._sid is not None:
            self.bus.line.unhear(round_._sid)
        round_._over = True
        round_.armed.clear()
        round_._changed.set()


@cache
def _pull(batch: int, priority: int, expires_s: float | None) -> bytes:
    ask: dict[str, object] = {"batch": batch, "group": PRIORITY_GROUP, "priority": priority}
    if expires_s is None:
        return msgspec.json.encode(ask | {"no_wait": True})
    return msgspec.json.encode(ask | {"expires": int(expires_s * SECOND_NS)})


def _status(message: Arrived) -> str | None:
    """``NATS/1.0 408 Request Timeout`` -> ``408``; None for an item."""
    return message.headers.status if message.headers is not None else None


async def _within(awaitable: Awaitable[Arrived], timeout_s: float) -> Arrived | None:
    try:
        async with asyncio.timeout(timeout_s):
            return await awaitable
    except TimeoutError:
        return None
