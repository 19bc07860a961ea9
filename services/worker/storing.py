"""Facts and answers on their way into the log, as long as it takes.

Answers "is it stored, and is it ours?". It decides nothing about the attempt; without a server it only waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from schemas import codec
from schemas.errors import BusError
from schemas.events import Event
from services.runtime.bus import Bus
from services.runtime.logs import logger

log = logger("worker")

AGAIN_S = 1.0
"""Between two tries to store what must be stored; each try itself lasts up to 30 s."""

T = TypeVar("T")


async def is_ours(bus: Bus, event: Event, msg_id: str) -> bool:
    """Whether the event stored under ``msg_id`` is this one. "Duplicate" alone decides nothing: a killed server forgets
    acks of what it stored, and then answers so to the first one's repetition."""
    ack = await bus.publish_event(event, msg_id)
    if not ack.duplicate:
        return True
    stored = await bus.stored("EVENTS", ack.seq)
    return stored is not None and codec.decode(stored.data).id == event.id


async def until_stored(publish: Callable[[], Coroutine[Any, Any, T]]) -> T:
    while True:
        try:
            return await publish()
        except BusError as error:
            log.warning("not stored yet", action="store_again", error=str(error))
            await asyncio.sleep(AGAIN_S)
