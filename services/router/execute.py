"""Does what the engine decided: publishes, puts, deletes, tells, creates. It decides nothing.

Facts and items leave at once, in the engine's order, any number of them; whatever does not go as smoothly, and every other
action, runs as a task of its own. What comes of it goes back into ``Live``; ``done`` is called so that the engine looks again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from schemas.codec import encode
from schemas.errors import BusError, HeadraceError
from schemas.events import AnyEvent, type_of
from schemas.subjects import control_subject, event_subject
from schemas.work import encode_wire
from services.router.dispatch.actions import (
    Action,
    DeleteItem,
    DropConsumer,
    EnsureConsumer,
    Publish,
    PutItem,
    Tell,
    Wake,
)
from services.router.dispatch.live import Live
from services.runtime.answers import Answer
from services.runtime.bus import Bus, ack_of
from services.runtime.logs import logger
from services.runtime.provision import delete_consumer, ensure_consumer

log = logger("router")

TRY_S = 5.0
"""How long one action is tried before the engine may ask again: longer than a server's restart, shorter than a lease."""
FIRST_S = 2.0
"""An overloaded server answers within that; a first try without an answer is repeated under the same id."""
AGAIN_S = 0.5
"""What was refused at once is not asked again at once: a full stream must not make a busy loop."""


async def wake_nobody(name: str) -> None:
    """Where no machine can be woken."""


class Executor:
    """``position`` reads the fold's position, ``now`` the heard clock; both are the router's. ``wake`` wakes a machine."""

    def __init__(
        self,
        bus: Bus,
        live: Live,
        *,
        now: Callable[[], float],
        position: Callable[[], int],
        done: Callable[[], None],
        wake: Callable[[str], Awaitable[None]] = wake_nobody,
    ) -> None:
        self._bus, self._live, self._now, self._position, self._done = bus, live, now, position, done
        self._wake = wake
        self._running: set[asyncio.Task[None]] = set()
        self._tried = 0
        """First tries whose answers are still to come."""
        self._closed = False

    @property
    def idle(self) -> bool:
        """Whether everything that was started has come to an end."""
        return not self._running and not self._tried

    def start(self, actions: list[Action]) -> None:
        """Set them all going, in order."""
        for action in actions:
            if not (isinstance(action, Publish | PutItem) and self._sent(action)):
                self._watch(asyncio.create_task(self._run(action)))

    async def close(self) -> None:
        self._closed = True
        for running in self._running:
            running.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _watch(self, running: asyncio.Task[None]) -> None:
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    def _sent(self, action: Publish | PutItem) -> bool:
        """On its way, without a task that waits for its ack: most of what a router does. False: nothing was sent."""
        if isinstance(action, PutItem):
            subject, data = action.subject, b"" if action.look_first else encode_wire(action.item)
        else:
            subject, data = event_subject(type_of(action.event), action.event.by), self._encoded(action.event)
        sent = self._bus.try_stored(subject, data, action.msg_id, timeout_s=FIRST_S) if data else None
        if sent is not None:
            self._tried += 1
            sent.add_done_callback(partial(self._answered, action))
        return sent is not None

    @staticmethod
    def _encoded(event: AnyEvent) -> bytes:
        """Nothing where it cannot be: the task will meet the same, and says so."""
        try:
            return encode(event)
        except HeadraceError:
            return b""

    def _answered(self, action: Publish | PutItem, answer: Answer) -> None:
        """Stored, as nearly always; else again from the start, under the same id."""
        self._tried -= 1
        if self._closed:
            return
        try:
            message = answer.result()
            ack = None if message is None else ack_of(action.msg_id, message)
        except BusError:
            ack = None
        if ack is None or ack.duplicate:
            self._watch(asyncio.create_task(self._run(action)))
            return
        if isinstance(action, Publish):
            self._stored(action, ack.seq)
        else:
            self._lies(action, ack.seq)
        if self._is_news(action):
            self._done()

    async def _run(self, action: Action) -> None:
        try:
            await self._do(action)
            is_news = self._is_news(action)
        except BusError as error:
            log.warning(
                "action failed, will be decided again", action="action_failed", what=action.key, error=str(error)
            )
            is_news = await self._again(action)
        except Exception:
            log.exception("action failed in our own code", action="action_broken", what=action.key)
            is_news = await self._again(action)
        if is_news:
            self._done()

    async def _do(self, action: Action) -> None:
        match action:
            case Publish():
                await self._publish(action)
            case PutItem():
                await self._put(action)
            case DeleteItem():
                await self._bus.delete_message("TASKS", action.seq)
                self._live.items.pop(action.attempt, None)
                self._live.not_stored(action.key)
            case Tell():
                await self._bus.send(control_subject(action.worker), encode_wire(action.control))
            case EnsureConsumer():
                await self._ensure(action)
            case DropConsumer():
                await self._drop(action)
            case Wake():
                await self._wake(action.name)
                self._live.not_stored(action.key)

    def _is_news(self, action: Action) -> bool:
        """Whether the engine may now want what it did not want before. A fact that waits to be heard back is looked at then, and
        an item that lies there waits for its start, unless somebody has stopped wanting it meanwhile."""
        match action:
            case Publish():
                return action.key not in self._live.pending
            case PutItem():
                return bool(self._live.cancels or self._live.revoked)
            case _:
                return not isinstance(action, Tell)

    async def _again(self, action: Action) -> bool:
        await asyncio.sleep(AGAIN_S)
        self._live.not_stored(action.key)
        return True

    async def _publish(self, action: Publish) -> None:
        ack = await self._bus.publish_event(action.event, action.msg_id, deadline_s=TRY_S)
        if ack.duplicate and ack.seq <= self._position():
            # The fold has passed whoever was first. If that did not count (a later version's fact), more of us will not either.
            await asyncio.sleep(AGAIN_S)
        self._stored(action, ack.seq)

    def _stored(self, action: Publish, seq: int) -> None:
        self._live.stored(action.key, seq)
        self._live.folded(self._position())

    async def _put(self, action: PutItem) -> None:
        found = await self._bus.last_for("TASKS", action.subject) if action.look_first else None
        if found is not None:
            seq = found.seq
        else:
            body = encode_wire(action.item)
            seq = (await self._bus.publish_stored(action.subject, body, action.msg_id, deadline_s=TRY_S)).seq
        self._lies(action, seq)

    def _lies(self, action: PutItem, seq: int) -> None:
        self._live.items[action.attempt] = (seq, self._now())
        self._live.not_stored(action.key)

    async def _ensure(self, action: EnsureConsumer) -> None:
        if await ensure_consumer(self._bus, action.config):
            log.info("consumer ready", action="consumer_ready", consumer=action.durable)
        self._live.confirmed[action.durable] = action.slots
        self._live.not_stored(action.key)

    async def _drop(self, action: DropConsumer) -> None:
        if await delete_consumer(self._bus, action.durable):
            log.info("consumer without holders deleted", action="consumer_dropped", consumer=action.durable)
        self._live.confirmed.pop(action.durable, None)
        self._live.unheld.pop(action.durable, None)
        self._live.not_stored(action.key)
