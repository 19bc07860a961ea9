"""Whatever an event may hold comes back, and whatever bytes arrive, a reader is not stopped."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings, strategies as st

from schemas import codec, events
from schemas.codec import UnknownEvent
from schemas.errors import InvalidEvent
from support.builders import build

_SIMPLE: dict[type, st.SearchStrategy[Any]] = {
    msgspec.inspect.StrType: st.text(max_size=12),
    msgspec.inspect.IntType: st.integers(-(2**63), 2**64 - 1),
    msgspec.inspect.FloatType: st.floats(allow_nan=False, allow_infinity=False),
    msgspec.inspect.BoolType: st.booleans(),
    msgspec.inspect.NoneType: st.none(),
}


def values(kind: msgspec.inspect.Type) -> st.SearchStrategy[Any]:
    """Every value that the type allows, at any depth."""
    match kind:
        case msgspec.inspect.UnionType(types=types):
            return st.one_of([values(each) for each in types])
        case msgspec.inspect.LiteralType(values=allowed):
            return st.sampled_from(allowed)
        case msgspec.inspect.VarTupleType(item_type=item):
            return st.lists(values(item), max_size=2).map(tuple)
        case msgspec.inspect.DictType(key_type=key, value_type=value):
            return st.dictionaries(values(key), values(value), max_size=2)
        case msgspec.inspect.StructType(cls=cls, fields=fields):
            return st.builds(cls, **{each.name: values(each.type) for each in fields if each.name != "v"})
        case _:
            return _SIMPLE[type(kind)]


anything = st.one_of([values(msgspec.inspect.type_info(kind)) for kind in events.EVENT_TYPES])
slowly = settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])


@slowly
@given(anything)
def test_every_event_comes_back_and_is_stored_the_same_again(event: events.Event) -> None:
    stored = codec.encode(event)
    again = codec.decode(stored)
    assert again == event
    assert isinstance(again, events.Event)
    assert codec.encode(again) == stored


@slowly
@given(st.sampled_from(events.EVENT_TYPES).map(build), st.data())
def test_damaged_bytes_are_an_event_or_an_error_and_never_anything_else(
    event: events.Event, data: st.DataObject
) -> None:
    stored = bytearray(codec.encode(event))
    for _ in range(data.draw(st.integers(1, 3))):
        stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(0, 255))
    try:
        result = codec.decode(bytes(stored))
    except InvalidEvent:
        return
    assert isinstance(result, (events.Event, UnknownEvent))


@slowly
@given(st.sampled_from(events.EVENT_TYPES).map(build), st.dictionaries(st.text(), st.integers(), max_size=3))
def test_fields_that_we_do_not_know_change_nothing(event: events.Event, unknown: dict[str, int]) -> None:
    fields = msgspec.json.decode(codec.encode(event))
    assert (
        codec.decode(msgspec.json.encode({f"new_{name}": value for name, value in unknown.items()} | fields)) == event
    )
