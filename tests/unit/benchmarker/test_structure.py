from __future__ import annotations

from typing import Any

import msgspec
import pytest

from services.benchmarker.graders.structure import WRAPPED, Schema, Structure, fault_of, grade_structure

PERSON: dict[str, Any] = {
    "type": "object",
    "required": ["name", "age"],
    "noOtherProperties": True,
    "properties": {"name": {"const": "Maria"}, "age": {"type": "integer", "minimum": 0, "maximum": 150}},
}


def schema(value: dict[str, Any]) -> Schema:
    return msgspec.convert(value, Schema)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ('{"name": "Maria", "age": 34}', 1.0),
        ('```json\n{"name": "Maria", "age": 34}\n```', 1.0),
        ('Here it is: {"name": "Maria", "age": 34}. Done.', WRAPPED),
        ('{} or {"name": "Maria", "age": 34}', WRAPPED),
        ('{"name": "Maria", "age": "34"}', 0.0),
        ('{"name": "Maria", "age": true}', 0.0),
        ('{"name": "Maria", "age": 200}', 0.0),
        ('{"name": "Maria"}', 0.0),
        ('{"name": "Maria", "age": 34, "town": "Rome"}', 0.0),
        ('["Maria", 34]', 0.0),
        ('{"name": "Maria", "age": 34', 0.0),
        ("Maria is 34.", 0.0),
    ],
)
def test_an_answer_is_held_against_the_schema(answer: str, value: float) -> None:
    assert grade_structure(Structure(schema=schema(PERSON)), answer).value == value


@pytest.mark.parametrize(
    ("value", "wanted", "fault"),
    [
        (True, {"const": 1}, "it is not 1"),
        (1, {"enum": [1, 2]}, None),
        (3, {"enum": [1, 2]}, "it is none of [1, 2]"),
        ([1], {"minItems": 2}, "it has 1 items"),
        ([1, "a"], {"items": {"type": "number"}}, "it[1] is no number"),
        (None, {"type": "null"}, None),
        ({"a": {"b": 1}}, {"properties": {"a": {"required": ["c"]}}}, "a lacks c"),
    ],
)
def test_a_fault_is_named_with_its_place(value: object, wanted: dict[str, Any], fault: str | None) -> None:
    assert fault_of(value, schema(wanted)) == fault


def test_a_word_of_json_schema_that_is_not_understood_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="patternProperties"):
        schema({"patternProperties": {}})
