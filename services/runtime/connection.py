"""The one connection of a process to NATS, without JetStream.

Answers "is it there, who says something, and what does it reply?". A question is one message and one answer; all answers come
back to one inbox, and any number may be on their way. It never uses nats-py's ``request`` [it loses messages that come back under
their own subject] and never flushes [a flush that times out kills nats-py's read loop for good].
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Self

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from schemas.errors import BusError
from schemas.tokens import encode_token
from services.runtime.answers import Answer, Answers
from services.runtime.lasting import LastingClient
from services.runtime.line import Line
from services.runtime.logs import logger
from services.runtime.nats_address import check_address, is_refusal, no_connection, public_url
from services.runtime.wire import Arrived

log = logger("bus")

Listener = Callable[[Msg], Awaitable[None] | None]
Hook = Callable[[], Awaitable[None] | None]

ANSWER_S = 5.0
"""How long one try waits. An overloaded server (2,000 in flight, an fsync for each) answers within 2 s."""
CLOSED = "the bus was closed before the server answered"
NOBODY_LISTENS = 503
"""The code of a BusError where no service listens on a subject; a service that is only slow has none."""


class Listening:
    """A running subscription."""

    def __init__(self, subscription: Subscription, line: Line) -> None:
        self._subscription, self._line = subscription, line

    async def stop(self) -> None:
        """Harmless on a closed connection."""
        self._line.unhear(self._subscription._id)
        try:
            await self._subscription.unsubscribe()
        except NatsError:
            pass


class Connection:
    """Made by ``await Connection.connect(…)``; an async context manager that closes it."""

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        self.url = url
        self.nc: Client = LastingClient()
        self.generation = 0
        """Counts connections: what was armed under another generation is gone."""
        self._options = options
        self.line = Line(self.nc)
        self._answers = Answers()
        self._connected = asyncio.Event()
        self._closing = False
        self._on_reconnect: list[Hook] = []
        self._on_disconnect: list[Hook] = []

    @classmethod
    async def connect(
        cls, url: str, *, name: str, user: str | None = None, password: str | None = None, timeout_s: float = 10.0
    ) -> Self:
        """Replies go to ``_INBOX_<user or name>.>``, so permissions can keep one service from reading another's. Raises
        BusError where no server answers in time."""
        check_address(url)
        options: dict[str, Any] = {"name": name, "inbox_prefix": f"_INBOX_{encode_token(user or name)}"}
        if user is not None:
            options |= {"user": user, "password": password}
        bus = cls(url, options)
        try:
            async with asyncio.timeout(timeout_s):
                await bus.open_client(
                    bus.nc,
                    disconnected_cb=bus._disconnected,
                    reconnected_cb=bus._reconnected,
                    closed_cb=bus._closed,
                )
        except (TimeoutError, OSError, NatsError) as error:
            raise no_connection(url, timeout_s, bus.nc.last_error or error) from error
        bus._answers.inbox = bus.nc.new_inbox()
        inbox = await bus.nc.subscribe(bus._answers.reply("*"), cb=_unheard, pending_bytes_limit=0)
        bus.line.direct(inbox._id, bus._answers.arrived)
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Publishes still in flight raise BusError."""
        self._closing = True
        self._connected.set()  # wakes who waits for a reconnection; there will be none
        self._answers.lost()
        await self.nc.close()

    @property
    def connected(self) -> bool:
        return self.nc.is_connected

    @property
    def refused(self) -> bool:
        """The server that answers now does not know our user and password; it is asked again, since its own may change."""
        return not self.nc.is_connected and is_refusal(self.nc.last_error)

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

    # -- saying and listening ----------------------------------------------------------------------------------------------

    async def send(self, subject: str, data: bytes, reply: str = "") -> bool:
        """A core publish: not stored, not acknowledged. Dropped (False) while disconnected: what is said late is said wrong."""
        if not self.nc.is_connected:
            return False
        await self.line.say(subject, data, reply)
        return True

    async def listen(self, subject: str, callback: Listener, *, queue: str = "", at_once: bool = False) -> Listening:
        """Call back for each message on a core subject, in order; an error in the callback is logged, not fatal. Messages
        sent while disconnected are lost. ``at_once``: as it is read, without a turn of the loop, by a plain function."""

        async def heard(message: Msg) -> None:
            try:
                result = callback(message)
                if inspect.isawaitable(result):
                    await result
            except Exception:
                log.exception("a listener failed", action="listener_failed", subject=message.subject)

        subscription = await self.nc.subscribe(subject, queue=queue, cb=heard, pending_bytes_limit=0)
        if at_once:
            self.line.direct(subscription._id, lambda one: callback(one.message(self.nc)))
        return Listening(subscription, self.line)

    # -- one question, one answer ------------------------------------------------------------------------------------------

    async def request(self, subject: str, data: bytes, *, timeout_s: float = 5.0, once: bool = True) -> bytes:
        """Ask a NATS service. Raises BusError where nobody answers in time; ``once=False`` asks again over reconnects."""
        message = await self.call(subject, data, None, timeout_s, once=once)
        return message.data

    async def fence(self, timeout_s: float = ANSWER_S) -> bool:
        """True when the server has handled all that was sent before, and all it sent us before has arrived. False when the
        connection was lost meanwhile."""
        token = self._answers.token()
        answer = self._answers.expect(token, "fence", timeout_s)
        try:
            return await self.send(self._answers.reply(token), b"") and await answer is not None
        finally:
            self._answers.forget(token)

    async def call(
        self, subject: str, data: bytes, headers: dict[str, str] | None, deadline_s: float, *, once: bool = False
    ) -> Arrived:
        """Send and wait, again and again until the deadline: after a disconnect, a lost answer, or "nobody there" (503, which
        a server that is still recovering its streams also says). An answer to an earlier try is as good as one to the last."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + deadline_s
        token = self._answers.token()
        reply = self._answers.reply(token)
        pause_s, reason = 0.02, "no connection"
        try:
            while (left_s := deadline - loop.time()) > 0 and not self._closing:
                if not self.nc.is_connected and not await self.wait_connected(left_s):
                    continue
                answer = self._answers.expect(token, subject, left_s if once else min(ANSWER_S, left_s))
                await self.line.say(subject, data, reply, headers)
                message = await answer
                if message is None:
                    reason = "no answer" if self.nc.is_connected else "the connection was lost"
                elif not message.is_nobody:
                    return message
                else:
                    reason = "nobody listens there; was the stream provisioned?"
                    if once:
                        break
                    await asyncio.sleep(min(pause_s, max(deadline - loop.time(), 0)))
                    pause_s = min(2 * pause_s, 0.5)
        except NatsError as error:
            raise BusError(f"{subject} ({len(data)} bytes): {error!r}; nothing was sent") from error
        finally:
            self._answers.forget(token)
        if self._closing:
            reason = CLOSED
        code = NOBODY_LISTENS if reason.startswith("nobody listens") else None
        raise BusError(f"{subject}: {reason} (tried for {deadline_s:g} s at {public_url(self.url)})", code)

    def try_call(self, subject: str, data: bytes, headers: dict[str, str] | None, timeout_s: float) -> Answer | None:
        """One try, sent before this returns and without a task to wait for it; None where nothing was sent. None in the answer:
        none came, or the connection was lost."""
        token = self._answers.token()
        reply = self._answers.reply(token)
        if not self.connected or self._closing or not self.line.try_say(subject, data, reply, headers):
            return None
        return self._answers.expect(token, subject, timeout_s)

    # -- connection --------------------------------------------------------------------------------------------------------

    async def _disconnected(self) -> None:
        self._connected.clear()
        self.generation += 1
        # nats-py would send what was not sent yet after reconnecting: old pulls, whose tasks nobody would take. Owners repeat.
        self.nc._pending.clear()
        self.nc._pending_data_size = 0
        self._answers.lost()
        if self._closing:
            return
        log.warning("connection lost", action="bus_disconnected", url=public_url(self.url))
        await self._run_hooks(self._on_disconnect)

    async def _reconnected(self) -> None:
        self._connected.set()
        log.info("connected again", action="bus_reconnected", url=public_url(self.url))
        await self._run_hooks(self._on_reconnect)

    async def _closed(self) -> None:
        """By ``close``, or by the server's refusal of our credentials: then every call fails from here on."""
        if not self._closing:
            reason = self.nc.last_error
            log.error("connection closed for good", action="bus_closed", url=public_url(self.url), error=repr(reason))
            self._closing = True
            self._connected.set()

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
            self._answers.denied(text)
        log.debug("nats error", action="nats_error", error=text or repr(error))


async def _unheard(_message: Msg) -> None:
    """Of a subscription whose messages are taken before nats-py sees them."""
