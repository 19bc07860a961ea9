from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from schemas.work import Answer
from services.router.http.chat_reply import Told
from services.router.http.responses_reply import ResponseEvents, Shape, custom_input
from services.router.http.responses_request import ResponsesRequest
from services.router.port import TokenUpdate

TOLD = Told(task="t", domain="code", model="m", worker="w", worker_name="n", reason="r", attempt=1, outcome="ok")
CALL = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": ""}}
PIECES = st.one_of(
    st.text(min_size=1, max_size=6).map(lambda text: {"text": text}),
    st.text(min_size=1, max_size=6).map(lambda text: {"thinking": text}),
    st.text(min_size=1, max_size=6).map(
        lambda text: {"tool_calls": (CALL | {"function": {"name": "", "arguments": text}},)}
    ),
)


def decoded(said: bytes) -> list[dict[str, Any]]:
    """Events, each named by its type."""
    events = []
    for block in said.split(b"\n\n")[:-1]:
        name, data = block.split(b"\n")
        event: dict[str, Any] = msgspec.json.decode(data.removeprefix(b"data: "))
        assert name == b"event: " + event["type"].encode()
        events.append(event)
    return events


@given(st.lists(PIECES, max_size=6))
def test_events_are_numbered_and_each_item_is_opened_and_closed_once_with_all_that_it_said(
    pieces: list[dict[str, Any]],
) -> None:
    speech = ResponseEvents(Shape(ResponsesRequest(), "t", 1, "m"))
    said = speech.begin()
    for piece in pieces:
        said += speech.token(TokenUpdate(attempt=1, index=0, **piece))
    events = decoded(said + speech.end(None, "stop", TOLD))
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    opened = [event["output_index"] for event in events if event["type"] == "response.output_item.added"]
    closed = [event["output_index"] for event in events if event["type"] == "response.output_item.done"]
    assert opened == sorted(closed) == list(range(len(opened)))
    ids = [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]
    assert len(set(ids)) == len(ids) and [item["id"] for item in events[-1]["response"]["output"]] == ids
    deltas: dict[int, str] = {}
    for event in events:
        if event["type"].endswith(".delta"):
            deltas[event["output_index"]] = deltas.get(event["output_index"], "") + event["delta"]
    for at, item in enumerate(events[-1]["response"]["output"]):
        whole = item["arguments"] if item["type"] == "function_call" else item["content"][0]["text"]
        assert whole == deltas.get(at, "")


def test_a_model_that_thinks_twice_has_two_thoughts_in_the_end_as_well() -> None:
    speech = ResponseEvents(Shape(ResponsesRequest(), "t", 1, "m"))
    for piece in ({"thinking": "a"}, {"text": "b"}, {"thinking": "c"}, {"text": "d"}):
        speech.token(TokenUpdate(attempt=1, index=0, **piece))
    whole = Answer(task="t", attempt=1, model="m", worker="w", thinking="ac", text="bd")
    output = decoded(speech.end(whole, "stop", TOLD))[-1]["response"]["output"]
    assert [(item["id"], item["content"][0]["text"]) for item in output] == [
        ("rs_t", "a"), ("msg_t", "b"), ("rs_t_1", "c"), ("msg_t_1", "d"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "text"),
    [('{"input":"a"}', "a"), ('{"input":1}', '{"input":1}'), ("not json", "not json"), ("[]", "[]")],
)
def test_a_custom_tools_input_is_the_text_or_whatever_was_written(arguments: str, text: str) -> None:
    assert custom_input(arguments) == text
