from __future__ import annotations

from typing import Any

import pytest

from services.router.http.ollama_messages import ollama_call, openai_messages
from services.router.http.reading import BadRequest

ONE = {"function": {"name": "add", "arguments": {"a": 1}}}


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": {}}, **more}


def ids_of(*messages: dict[str, Any]) -> tuple[list[str], list[Any]]:
    """The ids of all calls, and those of their results."""
    made = openai_messages(messages)
    calls = [call["id"] for message in made for call in message.get("tool_calls", ())]
    return calls, [message.get("tool_call_id") for message in made if message["role"] == "tool"]


def test_results_without_a_name_belong_to_the_calls_in_their_order() -> None:
    asked = {"role": "assistant", "tool_calls": [call("f"), call("f"), call("g")]}
    calls, results = ids_of(asked, *[{"role": "tool", "content": "x"}] * 3)
    assert len(set(calls)) == 3
    assert results == calls


def test_a_result_with_a_name_belongs_to_the_oldest_open_call_of_that_tool() -> None:
    asked = {"role": "assistant", "tool_calls": [call("f"), call("g"), call("f")]}
    calls, results = ids_of(asked, *({"role": "tool", "content": "", "tool_name": name} for name in ("g", "f", "f")))
    assert results == [calls[1], calls[0], calls[2]]


def test_ids_that_a_client_has_stay() -> None:
    asked = {"role": "assistant", "tool_calls": [call("f", id="mine"), call("g", id="other")]}
    calls, results = ids_of(asked, {"role": "tool", "content": "", "tool_call_id": "other"})
    assert (calls, results) == (["mine", "other"], ["other"])


def test_a_result_of_no_call_goes_on_without_an_id() -> None:
    assert ids_of({"role": "tool", "content": "x"}) == ([], [None])


def test_each_kind_of_image_is_named_by_its_first_bytes() -> None:
    images = ["/9j/4AAQ", "iVBORw0K", "R0lGODlh", "UklGRgAA", "AAAA"]
    (message,) = openai_messages([{"role": "user", "images": images}])
    kinds = [part["image_url"]["url"].partition(";")[0] for part in message["content"]]
    assert kinds == [f"data:image/{kind}" for kind in ("jpeg", "png", "gif", "webp", "png")]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("hi", "messages[0]"),
        ({"content": "x"}, "messages[0].role"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages[0].content"),
        ({"role": "user", "images": "iVBO"}, "messages[0].images"),
        ({"role": "user", "images": ["data:image/png;base64,iVBO"]}, "messages[0].images[0]"),
        ({"role": "assistant", "tool_calls": {}}, None),
        ({"role": "assistant", "tool_calls": [{"function": {}}]}, "messages[0].tool_calls[0]"),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
    ],
)
def test_what_cannot_be_read_is_named_by_its_place(message: Any, field: str | None) -> None:
    if field is None:
        openai_messages([message])  # nothing was said
        return
    with pytest.raises(BadRequest) as refused:
        openai_messages([message])
    assert refused.value.field == field


@pytest.mark.parametrize(("text", "arguments"), [("", {}), ('{"a": 1}', {"a": 1}), ("[1]", None), ('{"a"', None)])
def test_only_an_object_makes_a_call(text: str, arguments: Any) -> None:
    made = ollama_call({"id": "c", "function": {"name": "f", "arguments": text}}, 0)
    assert (made["function"]["arguments"] if made else None) == arguments
