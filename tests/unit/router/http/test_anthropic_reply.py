from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from schemas.events import Tokens
from schemas.work import Answer
from services.router.http.anthropic_reply import MessageEvents, message_of, stop_reason, usage_of
from services.router.http.chat_reply import Told
from services.router.port import TokenUpdate

TOLD = Told(task="t", domain="code", model="m", worker="w", worker_name="n", reason="r", attempt=1, outcome="ok")


def answer(**fields: Any) -> Answer:
    return Answer(task="t", attempt=1, model="m", worker="w", **fields)


def token(text: str = "", **fields: Any) -> TokenUpdate:
    return TokenUpdate(attempt=1, index=0, text=text, **fields)


def decoded(said: bytes) -> list[dict[str, Any]]:
    """Events, each named by its type."""
    events = []
    for block in said.split(b"\n\n")[:-1]:
        name, data = block.split(b"\n")
        event: dict[str, Any] = msgspec.json.decode(data.removeprefix(b"data: "))
        assert name == b"event: " + event["type"].encode()
        events.append(event)
    return events


@given(st.lists(st.tuples(st.sampled_from(("text", "thinking")), st.text(min_size=1, max_size=8)), max_size=6))
def test_blocks_open_and_close_in_order_and_lose_no_text(pieces: list[tuple[str, str]]) -> None:
    events = MessageEvents("t", 7)
    said = events.begin()
    for kind, text in pieces:
        said += events.token(token(**{kind: text}))
    said += events.end(None, "stop", TOLD)
    told = decoded(said)
    is_open, texts = None, ""
    for event in told:
        match event["type"]:
            case "content_block_start":
                assert is_open is None
                is_open = event["index"]
            case "content_block_stop":
                assert is_open == event["index"]
                is_open = None
            case "content_block_delta":
                assert is_open == event["index"]
                texts += event["delta"].get("text") or event["delta"].get("thinking") or ""
    assert (is_open, texts) == (None, "".join(text for _, text in pieces))
    assert told[0]["message"]["usage"]["input_tokens"] == 7


def delta(index: int, arguments: str, name: str = "") -> dict[str, Any]:
    return {"index": index, "id": f"c{index}", "function": {"name": name, "arguments": arguments}}


PIECES = st.one_of(
    st.sampled_from("abc").map(lambda text: {"text": text}),
    st.sampled_from("abc").map(lambda text: {"thinking": text}),
    st.tuples(st.integers(0, 2), st.sampled_from(['{"a":', "1}", "x", ""])).map(
        lambda each: {"tool_calls": (delta(each[0], each[1], f"f{each[0]}"),)}
    ),
)


@given(st.lists(PIECES, max_size=10))
def test_calls_that_come_interleaved_are_told_one_after_the_other(pieces: list[dict[str, Any]]) -> None:
    events = MessageEvents("t", 7)
    said = events.begin() + b"".join(events.token(token(**piece)) for piece in pieces)
    told = decoded(said + events.end(None, "stop", TOLD))
    is_open: int | None = None
    inputs: dict[str, str] = {}
    names: dict[int, str] = {}
    texts = ""
    for event in told:
        match event["type"]:
            case "content_block_start":
                assert is_open is None
                is_open = event["index"]
                if event["content_block"]["type"] == "tool_use":
                    names[is_open] = event["content_block"]["name"]
                    assert inputs.setdefault(names[is_open], "") == "", "each call has one block"
            case "content_block_stop":
                assert is_open == event["index"]
                is_open = None
            case "content_block_delta":
                assert is_open is not None and is_open == event["index"]
                texts += event["delta"].get("text") or event["delta"].get("thinking") or ""
                if event["delta"]["type"] == "input_json_delta":
                    inputs[names[is_open]] += event["delta"]["partial_json"]
    sent: dict[str, str] = {}
    for piece in pieces:
        for call in piece.get("tool_calls", ()):
            name = call["function"]["name"]
            sent[name] = sent.get(name, "") + call["function"]["arguments"]
    assert inputs.keys() == sent.keys() and is_open is None
    for name, arguments in sent.items():
        assert arguments.startswith(inputs[name])
        if inputs[name] != arguments:  # nothing can follow an object's end
            assert isinstance(msgspec.json.decode(inputs[name]), dict)
    assert texts == "".join(piece.get("text", "") + piece.get("thinking", "") for piece in pieces)


def test_a_call_streams_while_another_is_open_and_begins_when_that_is_whole() -> None:
    events = MessageEvents("t", 7)
    events.begin()

    def kinds(*calls: dict[str, Any], text: str = "") -> list[str]:
        return [
            event["type"].removeprefix("content_block_")
            for event in decoded(events.token(token(text, tool_calls=calls)))
        ]

    assert kinds(delta(0, "", "f")) == ["start"]
    assert kinds(delta(1, '{"a"', "g")) == []
    assert kinds(delta(0, '{"b":')) == ["delta"]
    assert kinds(text="so") == []
    assert kinds(delta(0, "2}")) == ["delta", "stop", "start", "delta"]
    assert kinds(delta(1, ":1}")) == ["delta", "stop", "start", "delta"]


@pytest.mark.parametrize(
    ("reason", "calls", "expected"),
    [
        (None, (), "end_turn"),
        ("length", (), "max_tokens"),
        ("stop", ({"id": "1"},), "tool_use"),
        ("length", ({"id": "1"},), "max_tokens"),
        ("content_filter", (), "refusal"),
        ("whatever", (), "end_turn"),
    ],
)
def test_stop_reasons(reason: str | None, calls: tuple[dict[str, Any], ...], expected: str) -> None:
    assert stop_reason(answer(finish_reason=reason, tool_calls=calls), None) == expected


def test_a_stop_sequence_is_named_where_the_backend_says_which() -> None:
    stopped = answer(text="a", finish_reason="stop", stopped_by="END")
    whole = message_of(stopped, TOLD, 1)
    assert (whole["stop_reason"], whole["stop_sequence"]) == ("stop_sequence", "END")
    delta = next(e for e in decoded(MessageEvents("t", 1).end(stopped, "stop", TOLD)) if e["type"] == "message_delta")[
        "delta"
    ]
    assert delta == {"stop_reason": "stop_sequence", "stop_sequence": "END"}


def test_counts_are_the_backends_where_it_counted_and_estimates_elsewhere() -> None:
    assert usage_of(Tokens(prompt=10, cached=4, output=0), 99, "x")["input_tokens"] == 6
    assert usage_of(Tokens(prompt=10, cached=4, output=0), 99, "x")["output_tokens"] == 0
    assert usage_of(None, 99, "x" * 40)["input_tokens"] == 99
    assert usage_of(None, 99, "x" * 40)["output_tokens"] > 0


def test_arguments_that_are_no_object_are_shown_as_they_are() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": "{broken"}}
    assert message_of(answer(tool_calls=(call,)), TOLD, 1)["content"][0]["input"] == {"_invalid": "{broken"}
