"""EVENTS as a real server holds it: its own sequences and times."""

from __future__ import annotations

from services.runtime.bus import Bus
from services.runtime.feed import Feed
from services.runtime.stored import StoredMessage


async def stored_log(bus: Bus) -> list[StoredMessage]:
    log: list[StoredMessage] = []

    async def take(messages: list[StoredMessage]) -> None:
        log.extend(messages)

    async with Feed(bus, "EVENTS", on_batch=take) as feed:
        await feed.caught_up.wait()
    return log
