"""Events to bytes and back, old versions included.

Answers "what does this message say?". Unknown types and newer versions come back as ``UnknownEvent``: readers park and count
them, they never drop them and never stop. Upcasters turn version n of a type into n + 1, one step each, on plain dicts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from schemas.errors import InvalidEvent
from schemas.events import EVENT_TYPES, AnyEvent, Event

Upcaster = Callable[[dict[str, Any]], dict[str, Any]]

_TAG_OF = {cls: str(cls.__struct_config__.tag) for cls in EVENT_TYPES}
CURRENT: dict[str, int] = dict.fromkeys(_TAG_OF.values(), 1)
UPCASTERS: dict[tuple[str, int], Upcaster] = {}
"""(type, from version) -> the step to the next version. One row for each step, for ever."""


class UnknownEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a type or version that this program does not know. ``raw`` is what was stored."""

    type: str
    v: int
    id: str
    raw: bytes


class _Head(msgspec.Struct):
    type: str
    id: str
    v: int = 1


UNREADABLE = (msgspec.DecodeError, RecursionError)
"""What msgspec raises for bytes it cannot read. It meets depth with RecursionError: 1,000 brackets must not stop a reader."""

_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(AnyEvent)
_head = msgspec.json.Decoder(_Head)
_encoder = msgspec.json.Encoder()
_loose = msgspec.json.Decoder(dict[str, Any])


def encode(event: Event) -> bytes:
    """The bytes to store. Raises InvalidEvent for what could not be read back: constructors check no types, and JSON turns
    NaN and infinity into null. Nothing can be taken out of EVENTS again, so this is worth the microsecond it costs."""
    try:
        data = _encoder.encode(event)
        _decoder.decode(data)
    except (*UNREADABLE, UnicodeEncodeError, OverflowError, TypeError) as error:
        raise InvalidEvent(f"{type(event).__name__} {event.id!r} cannot be stored: {error}") from error
    return data


def decode(data: bytes) -> AnyEvent | UnknownEvent:
    """Raises InvalidEvent for bytes that are not an event at all, or a known event with impossible contents."""
    try:
        event: AnyEvent = _decoder.decode(data)
    except UNREADABLE as error:
        return _decode_unusual(data, error)
    if event.v == CURRENT[_TAG_OF[type(event)]]:
        return event
    return _decode_unusual(data, None)


def _decode_unusual(data: bytes, error: Exception | None) -> AnyEvent | UnknownEvent:
    try:
        head = _head.decode(data)
    except UNREADABLE as bad:
        raise InvalidEvent(f"not an event: {bad}; the first bytes are {data[:60]!r}") from bad
    current = CURRENT.get(head.type)
    if current is None or head.v > current:
        return UnknownEvent(type=head.type, v=head.v, id=head.id, raw=data)
    if head.v == current:
        raise InvalidEvent(f"{head.type} {head.id}: {error}") from error
    fields = _loose.decode(data)
    return upcast(fields)


def upcast(fields: dict[str, Any]) -> AnyEvent:
    """Bring a decoded old event to the current version. Raises InvalidEvent where a step is missing or the result is bad."""
    kind, version = str(fields["type"]), int(fields.get("v", 1))
    while version < CURRENT[kind]:
        step = UPCASTERS.get((kind, version))
        if step is None:
            raise InvalidEvent(
                f"{kind} {fields.get('id')}: no upcaster from version {version}; this program lacks a row"
            )
        version += 1
        fields = {**step(fields), "v": version}
    try:
        event: AnyEvent = msgspec.convert(fields, type=AnyEvent)
    except msgspec.ValidationError as error:
        raise InvalidEvent(f"{kind} {fields.get('id')}: {error}") from error
    return event
