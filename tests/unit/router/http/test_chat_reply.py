from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st

from schemas.events import Tokens
from schemas.work import Answer
from services.router.http.chat_reply import DONE, Chunks, Told, completion, finish_reason, usage_of
from services.router.port import TokenUpdate

TOLD = Told(task="t", domain="code", model="m", worker="w", worker_name="n", reason="r", attempt=1, outcome="ok")


def decoded(chunk: bytes) -> dict[str, Any]:
    """One SSE event with one data line: a line break inside would split it."""
    assert chunk.startswith(b"data: ")
    assert chunk.endswith(b"\n\n")
    assert chunk.count(b"\n") == 2
    value: dict[str, Any] = msgspec.json.decode(chunk.removeprefix(b"data: "))
    return value


def token(text: str = "", **fields: Any) -> TokenUpdate:
    return TokenUpdate(attempt=1, index=0, text=text, **fields)


@given(st.text(max_size=20), st.text(max_size=20), st.text(min_size=1, max_size=20))
def test_any_text_and_any_model_name_make_one_valid_chunk(first: str, second: str, model: str) -> None:
    chunks = Chunks("t", 1, model)
    one, two = decoded(chunks.token(token(first))), decoded(chunks.token(token(second)))
    assert one["choices"] == [{"index": 0, "delta": {"role": "assistant", "content": first}, "finish_reason": None}]
    assert two["choices"] == [{"index": 0, "delta": {"content": second}, "finish_reason": None}]
    assert (one["model"], two["object"], one["id"]) == (model, "chat.completion.chunk", "chatcmpl-t")


def test_the_last_chunk_says_who_answered() -> None:
    last = decoded(Chunks("t", 1, "m").end(None, "stop", TOLD))
    assert last["choices"][0]["finish_reason"] == "stop"
    assert last["headrace"]["worker_name"] == "n"


def test_calls_end_as_calls_also_where_the_answer_cannot_be_read_again() -> None:
    chunks = Chunks("t", 1, "m")
    chunks.token(token(tool_calls=({"function": {"name": "a"}},)))
    assert decoded(chunks.end(None, "stop", TOLD))["choices"][0]["finish_reason"] == "tool_calls"


def test_usage_has_no_choice() -> None:
    tail = Chunks("t", 1, "m", usage=True).tail(Tokens(prompt=1, output=2))
    assert tail.endswith(DONE)
    assert Chunks("t", 1, "m").tail(Tokens(prompt=1, output=2)) == DONE
    chunk = decoded(tail.removesuffix(DONE))
    assert (chunk["choices"], chunk["usage"]["total_tokens"]) == ([], 3)


def test_calls_without_an_index_are_numbered_and_others_left_alone() -> None:
    chunks = Chunks("t", 1, "m")
    first = decoded(chunks.token(token(tool_calls=({"function": {"name": "a"}}, {"function": {"name": "b"}}))))
    calls = first["choices"][0]["delta"]["tool_calls"]
    assert [call["index"] for call in calls] == [0, 1]
    assert "content" not in first["choices"][0]["delta"]
    split = {"index": 5, "function": {"arguments": "{"}}
    assert decoded(chunks.token(token(tool_calls=(split,))))["choices"][0]["delta"]["tool_calls"] == [split]


@pytest.mark.parametrize("tokens", [None, Tokens(), Tokens(prompt=3), Tokens(output=3)])
def test_a_count_that_is_unknown_makes_usage_unknown(tokens: Tokens | None) -> None:
    assert usage_of(tokens) is None


def test_details_are_there_only_where_they_were_counted() -> None:
    assert usage_of(Tokens(prompt=3, output=0)) == {"prompt_tokens": 3, "completion_tokens": 0, "total_tokens": 3}
    counted = usage_of(Tokens(prompt=3, output=4, cached=0, thinking=1))
    assert counted is not None
    assert counted["prompt_tokens_details"] == {"cached_tokens": 0}
    assert counted["completion_tokens_details"] == {"reasoning_tokens": 1}


@pytest.mark.parametrize(
    ("reason", "calls", "expected"),
    [
        (None, (), "stop"),
        ("length", (), "length"),
        ("stop", ({"id": "1"},), "tool_calls"),
        ("length", ({"id": "1"},), "length"),
    ],
)
def test_finish_reasons_are_what_clients_decide_by(
    reason: str | None, calls: tuple[dict[str, Any], ...], expected: str
) -> None:
    answer = Answer(task="t", attempt=1, model="m", worker="w", finish_reason=reason, tool_calls=calls)
    assert finish_reason(answer) == expected


def test_a_whole_answer_keeps_text_beside_calls() -> None:
    answer = Answer(task="t", attempt=1, model="m", worker="w", text="I call", tool_calls=({"index": 0, "id": "1"},))
    message = completion([answer], 1, TOLD, answer.tokens)["choices"][0]["message"]
    assert message["content"] == "I call"
    assert message["tool_calls"] == [{"type": "function", "id": "1"}]
