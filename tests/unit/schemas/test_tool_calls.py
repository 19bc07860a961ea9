"""Tool calls are whole however they came, and a reader who missed a piece gets just that."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from schemas.tool_calls import Joined, rest


def whole(*arguments: str) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"id": f"c{n}", "type": "function", "function": {"name": f"f{n}", "arguments": text}}
        for n, text in enumerate(arguments)
    )


@given(st.lists(st.text(max_size=6), max_size=3), st.data())
def test_what_was_sent_and_the_rest_of_it_are_the_whole(arguments: list[str], data: st.DataObject) -> None:
    calls = whole(*arguments)
    sent: list[dict[str, Any]] = []
    for index, call in enumerate(calls):
        if data.draw(st.booleans()):
            text = call["function"]["arguments"]
            cut = data.draw(st.integers(0, len(text)))
            sent.append({"index": index, **call, "function": {**call["function"], "arguments": text[:cut]}})
    joined = Joined((*sent, *rest(sent, calls))).whole
    assert sorted(call["id"] for call in joined) == [call["id"] for call in calls]
    assert {call["id"]: call for call in joined} == {call["id"]: call for call in calls}


def test_nothing_is_lacking_of_what_was_sent_whole() -> None:
    calls = whole("{}", '{"a":1}')
    assert rest([{"index": n, **call} for n, call in enumerate(calls)], calls) == ()


@pytest.mark.parametrize("deltas", [whole("{}", "{}"), [{"index": 3, **whole("{}")[0]}, {**whole("", "{}")[1]}]])
def test_a_call_without_an_index_is_one_of_its_own(deltas: list[dict[str, Any]]) -> None:
    assert [call["id"] for call in Joined(deltas).whole] == ["c0", "c1"]
