"""Follow a stream: every message, in order, without gaps or repeats, over reconnects, server kills and deleted consumers.

Answers "what is stored next?". The position is the caller's to keep: start again at ``position + 1`` and nothing is missed. It
acknowledges nothing and stores nothing. Messages come in batches that grow with the backlog, at about 2 µs each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from nats.aio.client import Client
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from schemas.errors import BusError
from schemas.streams import SECOND_NS
from services.runtime.bus import Bus
from services.runtime.ids import new_id
from services.runtime.lasting import LastingClient
from services.runtime.logs import logger
from services.runtime.stored import StoredMessage
from services.runtime.wire import Arrived, BatchParser, RawHeaders

log = logger("feed")

OnMessage = Callable[[StoredMessage], Awaitable[None]]
OnBatch = Callable[[list[StoredMessage]], Awaitable[None]]

BATCH = 2_000
"""Two pulls of this many are out at once. 500 to 20,000 are equally fast; 2 × 100,000 overran the server's max_pending."""
PULL_S = 30
HEARTBEAT_S = 2.0
"""The server's sign of life on an idle pull; 2.5 times this without any rebuilds the consumer."""
RETRY_S = 0.2


class Feed:
    """``await Feed(bus, "EVENTS", on_message, start_seq=position + 1).start()``, or ``on_batch=`` for whole batches.

    ``position`` is the sequence of the last message whose handler has returned; ``caught_up`` is set once all messages that
    were stored at the start have been handled. An error of the handler ends the feed: ``wait`` raises it. ``last_per_subject``
    starts with the last message of each subject (a bucket's present contents) instead of at ``start_seq``. ``linger_s`` waits
    that long for a batch to fill.
    """

    def __init__(
        self,
        bus: Bus,
        stream: str,
        on_message: OnMessage | None = None,
        *,
        on_batch: OnBatch | None = None,
        start_seq: int = 1,
        filters: Sequence[str] | None = None,
        last_per_subject: bool = False,
        batch: int = BATCH,
        linger_s: float = 0.0,
    ) -> None:
        if (on_message is None) == (on_batch is None):
            raise ValueError("a feed takes either on_message or on_batch")
        self._bus = bus
        self._stream = stream
        self._on_message = on_message
        self._on_batch = on_batch
        self._filters = list(filters or ())
        self._last_per_subject = last_per_subject
        self._batch = batch
        self._linger_s = linger_s
        self._client: Client | None = None
        self._task: asyncio.Task[None] | None = None
        self._received = start_seq - 1
        self._ready: list[StoredMessage] = []
        self._arrived = asyncio.Event()
        self._full = asyncio.Event()
        self._broken = asyncio.Event()
        self._consumer = ""
        self._inbox = b""
        self._mark = b"-"
        self._subscription: Subscription | None = None
        self._consumer_seq = 0
        self._outstanding = 0
        self._heard_at = 0.0
        self._backlog: int | None = None
        self.position = start_seq - 1
        self.resets = 0
        self.caught_up = asyncio.Event()

    async def start(self) -> Feed:
        """Raises BusError where the stream is missing, or ends before ``start_seq``: a position from another log."""
        last = await self._bus.last_seq(self._stream)
        if last < self.position:
            raise BusError(
                f"{self._stream} ends at {last}, before the position {self.position}: it is not the log that this position "
                "was taken from; restore the log, or start again from 1"
            )
        self._client = LastingClient()
        self._client._ps = BatchParser(self._client, self._take_in)  # type: ignore[assignment]
        await self._bus.open_client(self._client, reconnected_cb=self._reconnected)
        self._task = asyncio.create_task(self._run(), name=f"feed {self._stream}")
        return self

    async def stop(self) -> None:
        """The handler in progress is cancelled; its batch is not counted in ``position``."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.exception()  # logged when it happened; whoever cares calls wait
        if self._client is not None:
            await self._forget_consumer()
            await self._client.close()
            self._client = None

    async def catch_up(self) -> None:
        """Until all that was stored at the start has been handled, or the feed ends before that: then as ``wait``."""
        caught_up = asyncio.create_task(self.caught_up.wait())
        try:
            await asyncio.wait(filter(None, (caught_up, self._task)), return_when=asyncio.FIRST_COMPLETED)
        finally:
            caught_up.cancel()
        if not self.caught_up.is_set():
            await self.wait()

    async def wait(self) -> None:
        """Until the feed ends: returns after ``stop``, raises what the handler raised."""
        if self._task is not None:
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.result()

    async def __aenter__(self) -> Feed:
        return await self.start()

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    # -- handing out -------------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        keeper = asyncio.create_task(self._keep(), name=f"feed {self._stream} keeper")
        try:
            while True:
                await self._arrived.wait()
                if self._linger_s and self._ready:
                    await self._linger()
                self._arrived.clear()
                self._full.clear()
                messages, self._ready = self._ready, []
                if messages:
                    await self._hand_out(messages)
                if self._backlog == 0 and not self._ready:
                    self.caught_up.set()
        except Exception:
            log.exception("a feed's handler failed", action="feed_failed", stream=self._stream, position=self.position)
            raise
        finally:
            keeper.cancel()
            await asyncio.wait([keeper])

    async def _linger(self) -> None:
        try:
            async with asyncio.timeout(self._linger_s):
                await self._full.wait()
        except TimeoutError:
            pass

    async def _hand_out(self, messages: list[StoredMessage]) -> None:
        if self._on_batch is not None:
            await self._on_batch(messages)
            self.position = messages[-1].seq
        elif self._on_message is not None:
            for message in messages:
                await self._on_message(message)
                self.position = message.seq
        await self._pull_if_low()

    # -- taking in ---------------------------------------------------------------------------------------------------------

    def _take_in(self, arrived: list[Arrived]) -> None:
        """All of a read. Whatever does not fit the sequence breaks the consumer, and the keeper makes another."""
        self._heard_at = asyncio.get_running_loop().time()
        ready, expected = self._ready, self._consumer_seq + 1
        for subject, reply, data, header, _ in arrived:
            if self._mark not in reply:
                if not reply and header is not None and subject == self._inbox:
                    self._status(header)
                continue
            words = reply.split(b".")
            at = 5 if len(words) == 9 else 7
            if int(words[at + 1]) != expected:
                self._broken.set()
                break
            expected += 1
            self._received = int(words[at])
            headers = RawHeaders(header) if header is not None else None
            ready.append(StoredMessage(self._received, subject.decode(), data, headers, int(words[at + 2]) // 1000))
            self._backlog = int(words[at + 3])
        self._outstanding -= expected - 1 - self._consumer_seq
        self._consumer_seq = expected - 1
        if ready:
            self._arrived.set()
        if len(ready) >= self._batch:
            self._full.set()

    def _status(self, header: bytes) -> None:
        headers = RawHeaders(header)
        if headers.status == "100":
            return
        if headers.status in ("404", "408"):
            self._outstanding -= int(headers.get("Nats-Pending-Messages", self._batch))
            self._arrived.set()  # the runner pulls again
        else:
            self._broken.set()

    async def _reconnected(self) -> None:
        self._broken.set()

    # -- the consumer ------------------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Make the consumer, and another whenever it broke or fell silent."""
        loop = asyncio.get_running_loop()
        self._broken.set()
        while True:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await self._broken.wait()
            except TimeoutError:
                if loop.time() - self._heard_at < 2.5 * HEARTBEAT_S:
                    await self._pull_if_low()
                    continue
            try:
                await self._remake()
            except (BusError, NatsError, OSError) as error:
                log.warning("cannot follow yet", action="feed_waits", stream=self._stream, error=str(error))
                self._broken.set()
                await asyncio.sleep(RETRY_S)

    async def _remake(self) -> None:
        client = self._client
        if client is None or not client.is_connected:
            raise BusError(f"feed of {self._stream}: no connection")
        if self._consumer:
            self.resets += 1
            await self._forget_consumer()
        name = f"feed-{new_id()}"
        config = self._config(name)
        inbox = client.new_inbox().rpartition(".")[0] + "." + name
        # From here on the old consumer's messages do not carry the mark, and are passed over.
        self._consumer, self._consumer_seq, self._outstanding = name, 0, 0
        self._inbox, self._mark = inbox.encode(), f".{name}.".encode()
        self._broken.clear()
        answer = await self._bus.api(
            f"CONSUMER.CREATE.{self._stream}.{name}",
            {"stream_name": self._stream, "config": config, "action": "create"},
            deadline_s=5.0,
        )
        self._backlog = int(answer["num_pending"])
        self._subscription = await client.subscribe(inbox)
        self._heard_at = asyncio.get_running_loop().time()
        self._arrived.set()
        await self._pull_if_low()

    def _config(self, name: str) -> dict[str, Any]:
        config: dict[str, Any] = {
            "name": name, "ack_policy": "none", "max_deliver": 1, "mem_storage": True, "num_replicas": 1,
            "inactive_threshold": 60 * SECOND_NS,
        }  # fmt: skip
        if self._filters:
            config["filter_subjects"] = self._filters
        if self._last_per_subject and self._received < 1:
            everything = {} if self._filters else {"filter_subject": ">"}
            return config | everything | {"deliver_policy": "last_per_subject"}
        return config | {"deliver_policy": "by_start_sequence", "opt_start_seq": self._received + 1}

    async def _forget_consumer(self) -> None:
        """Best effort: the server drops a silent one after a minute."""
        client, subscription = self._client, self._subscription
        self._subscription = None
        if client is None or subscription is None:
            return
        try:
            await subscription.unsubscribe()
            await client.publish(f"$JS.API.CONSUMER.DELETE.{self._stream}.{self._consumer}")
        except NatsError:
            pass

    async def _pull_if_low(self) -> None:
        """Keep up to two pulls out, and never more messages on their way than that: this is the backpressure."""
        client = self._client
        if client is None or self._subscription is None or not client.is_connected or self._broken.is_set():
            return
        while self._outstanding + len(self._ready) <= self._batch:
            self._outstanding += self._batch
            pull = {"batch": self._batch, "expires": PULL_S * SECOND_NS, "idle_heartbeat": int(HEARTBEAT_S * SECOND_NS)}
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
            await client.publish(subject, msgspec.json.encode(pull), reply=self._inbox.decode())
