"""Is the answer the JSON that was asked for? Read by a small part of JSON Schema, checked when the suite is loaded.

JSON that is right but wrapped in other words gets half: a program could dig it out, and it is not what was asked. A code fence
around it is no other words.
"""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import msgspec

from services.benchmarker.graders.grade import Check, Grade

WRAPPED = 0.5
DEPTH_MAX = 20
TRIES_MAX = 50
"""Places where JSON may begin: more braces than that are not an answer with some JSON in it."""
_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*?)\n?```\Z", re.DOTALL)
_STARTS = re.compile(r"[{\[]")
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}


class Schema(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is understood of JSON Schema. ``enum`` and ``const`` compare with type: 1 is not true."""

    type: Literal["object", "array", "string", "number", "integer", "boolean", "null"] | None = None
    properties: dict[str, Schema] = {}
    required: tuple[str, ...] = ()
    closed: bool = msgspec.field(default=False, name="noOtherProperties")
    items: Schema | None = None
    least: int | None = msgspec.field(default=None, name="minItems")
    most: int | None = msgspec.field(default=None, name="maxItems")
    minimum: float | None = None
    maximum: float | None = None
    enum: tuple[Any, ...] = ()
    const: Any = msgspec.UNSET


class Structure(Check, frozen=True, kw_only=True, tag="json"):
    schema: Schema


def grade_structure(check: Structure, answer: str) -> Grade:
    text = answer.strip()
    fenced = _FENCE.match(text)
    found, value = _whole(fenced[1] if fenced else text)
    if found:
        fault = fault_of(value, check.schema)
        return Grade(0.0 if fault else 1.0, fault or "is the JSON asked for")
    fault = "holds no JSON"
    for start in list(_STARTS.finditer(text))[:TRIES_MAX]:
        found, value = _part(text, start.start())
        if found:
            problem = fault_of(value, check.schema)
            if problem is None:
                return Grade(WRAPPED, "is the JSON asked for, inside other words")
            fault = problem
    return Grade(0.0, fault)


def fault_of(value: Any, schema: Schema, path: str = "it", depth: int = 0) -> str | None:
    """What is wrong with the value, the first that is found; None where nothing is."""
    if depth > DEPTH_MAX:
        return f"{path} is nested too deeply"
    if schema.type is not None and not _is_type(value, schema.type):
        return f"{path} is no {schema.type}"
    if schema.const is not msgspec.UNSET and not _same(value, schema.const):
        return f"{path} is not {schema.const!r}"
    if schema.enum and not any(_same(value, one) for one in schema.enum):
        return f"{path} is none of {list(schema.enum)}"
    if _is_type(value, "number") and not _in_range(value, schema.minimum, schema.maximum):
        return f"{path} is out of range"
    if isinstance(value, dict):
        return _object_fault(value, schema, path, depth)
    return _array_fault(value, schema, path, depth) if isinstance(value, list) else None


def _object_fault(value: dict[str, Any], schema: Schema, path: str, depth: int) -> str | None:
    missing = next((name for name in schema.required if name not in value), None)
    if missing is not None:
        return f"{path} lacks {missing}"
    if schema.closed and set(value) - set(schema.properties):
        return f"{path} has more than was asked"
    faults = (
        fault_of(value[name], inner, name, depth + 1) for name, inner in schema.properties.items() if name in value
    )
    return next((fault for fault in faults if fault), None)


def _array_fault(value: list[Any], schema: Schema, path: str, depth: int) -> str | None:
    if not _in_range(len(value), schema.least, schema.most):
        return f"{path} has {len(value)} items"
    if schema.items is None:
        return None
    faults = (fault_of(one, schema.items, f"{path}[{at}]", depth + 1) for at, one in enumerate(value))
    return next((fault for fault in faults if fault), None)


def _is_type(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _TYPES[name])


def _in_range(value: float, least: float | None, most: float | None) -> bool:
    return (least is None or value >= least) and (most is None or value <= most)


def _same(value: Any, wanted: Any) -> bool:
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


def _whole(text: str) -> tuple[bool, Any]:
    try:
        return True, json.loads(text)
    except (ValueError, RecursionError):  # a number of thousands of digits is a ValueError too
        return False, None


def _part(text: str, start: int) -> tuple[bool, Any]:
    try:
        return True, json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return False, None
