"""Make the server hold the streams and consumers of ``schemas.streams``.

Answers "is everything there, and what had to change?". Idempotent; it never deletes anything and never touches a setting that
the definitions do not name. Only routers create consumers (PROTOCOL.md): two creators with different caps would fight.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.errors import BusError
from schemas.streams import SECOND_NS, STREAMS, Config
from services.runtime.bus import CONSUMER_NOT_FOUND, STREAM_NOT_FOUND, Bus

CONSUMER_EXISTS = 10148


async def provision(bus: Bus, *, keep_s: float | None = None) -> list[str]:
    """One line for each change, such as ``created stream EVENTS``; empty when all was in place. ``keep_s`` replaces the
    time that TASKS keeps texts, but never less than its duplicate window (2 h): shorter promises are kept by deleting."""
    changes: list[str] = []
    for config in STREAMS:
        if keep_s is not None and config["name"] == "TASKS":
            config = {**config, "max_age": max(int(keep_s * SECOND_NS), config["duplicate_window"])}
        changes += await _ensure_stream(bus, config)
    return changes


async def _ensure_stream(bus: Bus, config: Config) -> list[str]:
    name = config["name"]
    try:
        present = (await bus.api(f"STREAM.INFO.{name}"))["config"]
    except BusError as error:
        if error.code != STREAM_NOT_FOUND:
            raise
        await bus.api(f"STREAM.CREATE.{name}", config)
        return [f"created stream {name}"]
    differences = differing(config, present)
    if not differences:
        return []
    await bus.api(f"STREAM.UPDATE.{name}", {**present, **config})
    return [f"changed stream {name}: {key} {old!r} -> {new!r}" for key, (old, new) in differences.items()]


async def ensure_consumer(bus: Bus, config: Config, *, stream: str = "TASKS") -> bool:
    """True if it was created or changed. It is confirmed on return: what is published from now on reaches it."""
    name = config["durable_name"]
    try:
        present = (await bus.api(f"CONSUMER.INFO.{stream}.{name}"))["config"]
    except BusError as error:
        if error.code != CONSUMER_NOT_FOUND:
            raise
        try:
            await bus.api(
                f"CONSUMER.CREATE.{stream}.{name}", {"stream_name": stream, "config": config, "action": "create"}
            )
        except BusError as lost_race:
            if lost_race.code != CONSUMER_EXISTS:
                raise
            return await ensure_consumer(bus, config, stream=stream)
        return True
    if not differing(config, present):
        return False
    # The complete configuration: what an update leaves out, the server drops.
    await bus.api(
        f"CONSUMER.CREATE.{stream}.{name}",
        {"stream_name": stream, "config": {**present, **config}, "action": "update"},
    )
    return True


async def delete_consumer(bus: Bus, durable: str, *, stream: str = "TASKS") -> bool:
    """False if it was gone already."""
    try:
        await bus.api(f"CONSUMER.DELETE.{stream}.{durable}")
    except BusError as error:
        if error.code != CONSUMER_NOT_FOUND:
            raise
        return False
    return True


def differing(wanted: Mapping[str, Any], present: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """key -> (present, wanted) of every wanted setting that is not so. The server leaves out what is false, zero or none, and
    adds metadata of its own."""
    found: dict[str, tuple[Any, Any]] = {}
    for key, value in wanted.items():
        has = present.get(key)
        same = differing(value, has or {}) == {} if isinstance(value, Mapping) else (has or None) == (value or None)
        if not same:
            found[key] = (has, value)
    return found
