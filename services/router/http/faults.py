"""What is wrong with a value, in words for whoever sent it: where, what, and what may stand there instead.

msgspec says ``Invalid enum value 'soon' - at `$.constraints.urgency```: neither what else there is, nor how a misspelt name is
written. Here the type that was wanted is asked. Pure; nothing is looked up before something is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from services.router.nearest import nearest

_AT = re.compile(r" - at `\$\.?(.*)`$")
_STEP = re.compile(r"\[(\d+|\.\.\.)\]|([^.\[]+)")


def explained(error: str, kind: Any, values: Any, prefix: str = "") -> tuple[str, str | None, tuple[str, ...]]:
    """The words, the field in the sender's own words (None: the whole), and the nearest of what may stand there."""
    found = _AT.search(error)
    path = found[1] if found else ""
    words = _AT.sub("", error)
    name = re.search(r"(?:required field|unknown field) `([^`]+)`", words)
    field = ".".join(part for part in (prefix, path, name[1] if name else "") if part) or None
    wanted, value = _follow(inspect.type_info(kind), values, path)
    close: tuple[str, ...] = ()
    if "unknown field" in words and name:
        close = nearest(name[1], _fields(wanted))
        words = f"unknown field `{name[1]}`; nearest: {', '.join(close)}"
    elif words.startswith("Invalid enum value") and (allowed := tuple(_values(wanted))):
        close = nearest(str(value), allowed)
        words = f"{_short(value)} is not one of {', '.join(allowed)}"
    elif name:
        words = f"missing required field `{name[1]}`"
    elif "got" not in words and isinstance(value, int | float):
        words = f"{words}, got {_short(value)}"
    return f"{field}: {words}" if field else words, field, close


def _follow(wanted: inspect.Type, value: Any, path: str) -> tuple[tuple[inspect.Type, ...], Any]:
    """The types that may stand at ``path``, and what does; msgspec writes ``...`` for a key of a table."""
    kinds = tuple(_flat(wanted))
    for index, name in _STEP.findall(path):
        kinds = tuple(inner for kind in kinds for inner in _inner(kind, name))
        try:
            value = value[name or int(index)]
        except (KeyError, IndexError, TypeError, ValueError):
            value = None
    return kinds, value


def _inner(kind: inspect.Type, name: str) -> Iterator[inspect.Type]:
    match kind:
        case inspect.StructType(fields=fields) if name:
            yield from (part for field in fields if field.encode_name == name for part in _flat(field.type))
        case inspect.DictType(value_type=inner) | inspect.CollectionType(item_type=inner):
            yield from _flat(inner)


def _flat(kind: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.Metadata):
        yield from _flat(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for part in kind.types:
            yield from _flat(part)
    else:
        yield kind


def _fields(kinds: tuple[inspect.Type, ...]) -> Iterator[str]:
    for kind in kinds:
        if isinstance(kind, inspect.StructType):
            yield from (field.encode_name for field in kind.fields)


def _values(kinds: tuple[inspect.Type, ...]) -> Iterator[str]:
    for kind in kinds:
        if isinstance(kind, inspect.LiteralType):
            yield from map(str, kind.values)
        elif isinstance(kind, inspect.EnumType):
            yield from (str(member.value) for member in kind.cls)


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode() if not isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
