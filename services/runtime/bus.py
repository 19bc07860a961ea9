"""The one connection of a process to NATS.

Answers "store this", "what is stored there?" and "tell me when". Publishing is pipelined: any number may be in flight, all
acks come back to one inbox [65,000/s, against 5,300/s one by one]. Every stored message carries an id and is repeated under it
until the server has answered, over reconnects and restarts. It never uses nats-py's ``fetch``, watchers or ``request`` [its
``request`` loses messages that come back under their own subject] and never flushes [a flush that times out kills nats-py's
read loop for good].
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from schemas.codec import encode
from schemas.errors import BusError
from schemas.events import Event, type_of
from schemas.subjects import event_subject
from schemas.tokens import encode_token
from services.runtime.ids import new_id
from services.runtime.logs import logger
from services.runtime.stored import Headers, StoredMessage, parse_direct

log = logger("bus")

Listener = Callable[[Msg], Awaitable[None] | None]
Hook = Callable[[], Awaitable[None] | None]

DEADLINE_S = 30.0
"""How long a publish is repeated before its caller hears of it: longer than a server's restart or a pause of 10 s."""
ANSWER_S = 5.0
"""How long one try waits. An overloaded server (2,000 in flight, an fsync for each) answers within 2 s."""
CLOSED = "the bus was closed before the server answered"
CONSUMER_NOT_FOUND = 10014
DELETE_FAILED = 10057
WRONG_LAST_SEQUENCE = 10071
STREAM_NOT_FOUND = 10059


class Ack(NamedTuple):
    """``duplicate``: something is already stored under this message id, at ``seq``; read it before believing it is another's."""

    seq: int
    duplicate: bool


class _ApiError(msgspec.Struct):
    code: int = 0
    err_code: int = 0
    description: str = ""


class _PubAck(msgspec.Struct):
    seq: int = 0
    duplicate: bool = False
    error: _ApiError | None = None


class Listening:
    """A running subscription."""

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription

    async def stop(self) -> None:
        """Harmless on a closed connection."""
        try:
            await self._subscription.unsubscribe()
        except NatsError:
            pass


class Bus:
    """Made by ``await Bus.connect(…)``; an async context manager that closes it."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        self.url = url
        self.nc = Client()
        self.generation = 0
        """Counts connections: what was armed under another generation is gone."""
        self._options = options
        self._waiting: dict[str, tuple[asyncio.Future[Msg | None], str]] = {}
        self._tokens = 0
        self._inbox = ""
        self._connected = asyncio.Event()
        self._closing = False
        self._on_reconnect: list[Hook] = []
        self._on_disconnect: list[Hook] = []

    @classmethod
    async def connect(
        cls, url: str, *, name: str, user: str | None = None, password: str | None = None, timeout_s: float = 10.0
    ) -> Bus:
        """Replies go to ``_INBOX_<user or name>.>``, so permissions can keep one service from reading another's. Raises
        BusError where no server answers in time."""
        options: dict[str, Any] = {"name": name, "inbox_prefix": f"_INBOX_{encode_token(user or name)}"}
        if user is not None:
            options |= {"user": user, "password": password}
        bus = cls(url, options)
        try:
            async with asyncio.timeout(timeout_s):
                await bus.open_client(bus.nc, disconnected_cb=bus._disconnected, reconnected_cb=bus._reconnected)
        except (TimeoutError, OSError, NatsError) as error:
            reason = bus.nc.last_error or error
            raise BusError(
                f"no connection to {public_url(url)} within {timeout_s:g} s: {reason}; "
                "is nats-server running there? `headrace up` brings its own"
            ) from error
        bus._inbox = bus.nc.new_inbox()
        await bus.nc.subscribe(f"{bus._inbox}.*", cb=bus._answered, pending_bytes_limit=0)
        bus._connected.set()
        return bus

    async def open_client(self, client: Client, **callbacks: Any) -> Client:
        """Connect another client with this bus's credentials. A dead server is noticed within 15 s and retried for ever
        [nats-py's defaults: 6 min, then closed for good after 2 min]."""
        await client.connect(
            self.url,
            error_cb=self._errored,
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.2,  # type: ignore[arg-type]  # nats-py sleeps for it, so a fraction is fine
            ping_interval=5,
            max_outstanding_pings=2,
            **self._options,
            **callbacks,
        )
        return client

    async def __aenter__(self) -> Bus:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Publishes still in flight raise BusError."""
        self._closing = True
        self._connected.set()  # wakes who waits for a reconnection; there will be none
        for future, _ in self._waiting.values():
            if not future.done():
                future.set_exception(BusError(CLOSED))
        await self.nc.close()

    @property
    def connected(self) -> bool:
        return self.nc.is_connected

    async def wait_connected(self, timeout_s: float) -> bool:
        """False where the server stays away for that long."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self.nc.is_connected and not self._closing:
                    self._connected.clear()  # nats-py says so a moment before it tells us
                    await self._connected.wait()
        except TimeoutError:
            pass
        return self.nc.is_connected

    def on_reconnect(self, hook: Hook) -> None:
        """Called after each reconnection, subscriptions in place."""
        self._on_reconnect.append(hook)

    def on_disconnect(self, hook: Hook) -> None:
        """Called as soon as the connection is lost, before anything is tried again."""
        self._on_disconnect.append(hook)

    def off(self, hook: Hook) -> None:
        """Forget a hook; harmless if it was never set."""
        for hooks in (self._on_reconnect, self._on_disconnect):
            if hook in hooks:
                hooks.remove(hook)

    # -- storing -----------------------------------------------------------------------------------------------------------

    async def publish_event(self, event: Event, msg_id: str, *, deadline_s: float = DEADLINE_S) -> Ack:
        """Store a fact under ``ev.<type>.<by>``."""
        return await self.publish_stored(
            event_subject(type_of(event), event.by), encode(event), msg_id, deadline_s=deadline_s
        )

    async def publish_stored(
        self,
        subject: str,
        data: bytes,
        msg_id: str,
        headers: Headers | None = None,
        *,
        deadline_s: float = DEADLINE_S,
    ) -> Ack:
        """Returns when the server has stored it. Repeated under the same id over reconnects, so that it is stored once;
        raises BusError on a refusal at once, and after ``deadline_s`` without an answer (it may be stored then)."""
        message = await self._call(subject, data, {**(headers or {}), "Nats-Msg-Id": msg_id}, deadline_s)
        try:
            ack = msgspec.json.decode(message.data, type=_PubAck)
        except msgspec.DecodeError as error:
            raise BusError(f"{subject}: not a publish ack: {message.data[:80]!r}; is it a stream's subject?") from error
        if ack.error is not None:
            raise BusError(f"{subject}: {ack.error.description} ({ack.error.err_code})", ack.error.err_code)
        return Ack(ack.seq, ack.duplicate)

    async def send(self, subject: str, data: bytes, reply: str = "") -> bool:
        """A core publish: not stored, not acknowledged. Dropped (False) while disconnected: what is said late is said wrong."""
        if not self.nc.is_connected:
            return False
        await self.nc.publish(subject, data, reply=reply)
        return True

    # -- asking ------------------------------------------------------------------------------------------------------------

    async def api(
        self, subject: str, payload: dict[str, Any] | None = None, *, deadline_s: float = 10.0
    ) -> dict[str, Any]:
        """``$JS.API.<subject>``; raises BusError with the server's error code. Repeated over reconnects: ask only for what
        may be done twice."""
        data = msgspec.json.encode(payload) if payload is not None else b""
        message = await self._call(f"$JS.API.{subject}", data, None, deadline_s)
        answer: dict[str, Any] = msgspec.json.decode(message.data)
        if error := answer.get("error"):
            code = error.get("err_code")
            raise BusError(f"{subject}: {error.get('description')} ({code})", code)
        return answer

    async def request(self, subject: str, data: bytes, *, timeout_s: float = 5.0, once: bool = True) -> bytes:
        """Ask a NATS service. Raises BusError where nobody answers in time; ``once=False`` asks again over reconnects."""
        message = await self._call(subject, data, None, timeout_s, once=once)
        return message.data

    async def stored(self, stream: str, seq: int) -> StoredMessage | None:
        return await self._direct(stream, {"seq": seq})

    async def last_for(self, stream: str, subject: str) -> StoredMessage | None:
        """The last message on ``subject``, which may hold wildcards."""
        return await self._direct(stream, {"last_by_subj": subject})

    async def last_seq(self, stream: str) -> int:
        """The sequence of the stream's last message; 0 before the first."""
        info = await self.api(f"STREAM.INFO.{stream}")
        return int(info["state"]["last_seq"])

    async def delete_message(self, stream: str, seq: int) -> bool:
        """Frees a delivered item's place at once, which a purge does not [31 s]. False if it was gone already."""
        try:
            await self.api(f"STREAM.MSG.DELETE.{stream}", {"seq": seq, "no_erase": True})
        except BusError as error:
            if error.code != DELETE_FAILED or "not permitted" in str(error):
                raise
            return False
        return True

    async def _direct(self, stream: str, query: dict[str, Any]) -> StoredMessage | None:
        message = await self._call(f"$JS.API.DIRECT.GET.{stream}", msgspec.json.encode(query), None, 10.0)
        headers = message.headers or {}
        status = headers.get("Status")
        if status == "404":
            return None
        if status is not None:
            raise BusError(f"direct get {query} from {stream}: {status} {headers.get('Description', '')}")
        return parse_direct(headers, message.data)

    # -- keys and values ---------------------------------------------------------------------------------------------------

    async def kv_put(self, bucket: str, key: str, data: bytes) -> int:
        """The new revision."""
        return (await self.publish_stored(f"$KV.{bucket}.{key}", data, new_id())).seq

    async def kv_get(self, bucket: str, key: str) -> StoredMessage | None:
        """``seq`` is the revision. A deleted key is None."""
        found = await self.last_for(f"KV_{bucket}", f"$KV.{bucket}.{key}")
        return None if found is None or "KV-Operation" in (found.headers or {}) else found

    async def kv_update(self, bucket: str, key: str, data: bytes, revision: int) -> int:
        """Compare and set; ``revision`` 0 creates. Raises BusError with WRONG_LAST_SEQUENCE where another was faster."""
        expected = {"Nats-Expected-Last-Subject-Sequence": str(revision)}
        return (await self.publish_stored(f"$KV.{bucket}.{key}", data, new_id(), expected)).seq

    # -- listening ---------------------------------------------------------------------------------------------------------

    async def listen(self, subject: str, callback: Listener, *, queue: str = "") -> Listening:
        """Call back for each message on a core subject, in order; an error in the callback is logged, not fatal. Messages
        sent while disconnected are lost."""

        async def heard(message: Msg) -> None:
            try:
                result = callback(message)
                if inspect.isawaitable(result):
                    await result
            except Exception:
                log.exception("a listener failed", action="listener_failed", subject=message.subject)

        return Listening(await self.nc.subscribe(subject, queue=queue, cb=heard, pending_bytes_limit=0))

    async def fence(self, timeout_s: float = ANSWER_S) -> bool:
        """True when the server has handled all that was sent before, and all it sent us before has arrived. False when the
        connection was lost meanwhile."""
        token, future = self._expect("fence")
        try:
            if not await self.send(f"{self._inbox}.{token}", b""):
                return False
            async with asyncio.timeout(timeout_s):
                return await future is not None
        except TimeoutError:
            return False
        finally:
            self._waiting.pop(token, None)

    # -- one question, one answer ------------------------------------------------------------------------------------------

    def _expect(self, subject: str) -> tuple[str, asyncio.Future[Msg | None]]:
        self._tokens += 1
        token = str(self._tokens)
        future: asyncio.Future[Msg | None] = asyncio.get_running_loop().create_future()
        self._waiting[token] = (future, subject)
        return token, future

    async def _call(
        self, subject: str, data: bytes, headers: dict[str, str] | None, deadline_s: float, *, once: bool = False
    ) -> Msg:
        """Send and wait, again and again until the deadline: after a disconnect, a lost answer, or "nobody there" (503, which
        a server that is still recovering its streams also says). A None in the future means "send again"."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + deadline_s
        pause_s, reason = 0.02, "no connection"
        while (left_s := deadline - loop.time()) > 0:
            if self._closing:
                raise BusError(f"{subject}: {CLOSED}")
            if not self.nc.is_connected and not await self.wait_connected(left_s):
                continue
            token, future = self._expect(subject)
            try:
                await self.nc.publish(subject, data, reply=f"{self._inbox}.{token}", headers=headers and dict(headers))
                async with asyncio.timeout_at(deadline if once else min(loop.time() + ANSWER_S, deadline)):
                    message = await future
            except TimeoutError:
                reason = "no answer"
                continue
            except NatsError as error:
                raise BusError(f"{subject} ({len(data)} bytes): {error!r}; nothing was sent") from error
            finally:
                self._waiting.pop(token, None)
            if message is None:
                reason = "the connection was lost"
                continue
            status = (message.headers or {}).get("Status")
            if status == "503":
                reason = "nobody listens there; was the stream provisioned?"
                if once:
                    break
                await asyncio.sleep(min(pause_s, max(deadline - loop.time(), 0)))
                pause_s = min(2 * pause_s, 0.5)
                continue
            return message
        raise BusError(f"{subject}: {reason} (tried for {deadline_s:g} s at {public_url(self.url)})")

    async def _answered(self, message: Msg) -> None:
        token = message.subject.rpartition(".")[2]
        entry = self._waiting.get(token)
        if entry is not None and not entry[0].done():
            entry[0].set_result(message)

    # -- connection --------------------------------------------------------------------------------------------------------

    async def _disconnected(self) -> None:
        self._connected.clear()
        self.generation += 1
        # nats-py would send what was not sent yet after reconnecting: old pulls, whose tasks nobody would take. Owners repeat.
        self.nc._pending.clear()
        self.nc._pending_data_size = 0
        for future, _ in list(self._waiting.values()):
            if not future.done():
                future.set_result(None)
        if self._closing:
            return
        log.warning("connection lost", action="bus_disconnected", url=public_url(self.url))
        await self._run_hooks(self._on_disconnect)

    async def _reconnected(self) -> None:
        self._connected.set()
        log.info("connected again", action="bus_reconnected", url=public_url(self.url))
        await self._run_hooks(self._on_reconnect)

    async def _run_hooks(self, hooks: list[Hook]) -> None:
        for hook in list(hooks):
            try:
                result = hook()
                if inspect.isawaitable(result):
                    await result
            except Exception:
                log.exception("a connection hook failed", action="hook_failed")

    async def _errored(self, error: Exception) -> None:
        """A denied publish is answered here and nowhere else: turn it into its caller's error."""
        text = str(error)
        if "permissions violation for publish to" in text:
            for future, subject in list(self._waiting.values()):
                if f'"{subject.lower()}"' in text and not future.done():
                    future.set_exception(BusError(f"{subject}: this user may not publish there ({text})"))
        log.debug("nats error", action="nats_error", error=text or repr(error))


def public_url(url: str) -> str:
    """The URL without its user and password."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
