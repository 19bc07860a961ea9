"""services.router.http.missed: what a reader still lacks of an answer when it ends."""

from __future__ import annotations

from typing import Any

from schemas.work import Answer
from services.router.http.missed import Had
from services.router.port import TokenUpdate

CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}


def answer(**fields: Any) -> Answer:
    usual: dict[str, Any] = {"text": "Hello", "thinking": "hm", "finish_reason": "stop"}
    return Answer(task="t1", attempt=1, model="qwen3", worker="w-1", **usual | fields)


def had(*updates: dict[str, Any]) -> Had:
    reader = Had()
    for index, update in enumerate(updates):
        reader.add(TokenUpdate(attempt=1, index=index, **update))
    return reader


def test_who_had_nothing_gets_the_whole_answer_even_an_empty_one() -> None:
    missed = had().missed(2, answer(tool_calls=(CALL,), logprobs=({"token": "H"},)))
    assert missed is not None and (missed.attempt, missed.text, missed.thinking) == (2, "Hello", "hm")
    assert (missed.tool_calls, missed.logprobs) == ((CALL,), ({"token": "H"},))
    assert had().missed(1, answer(text="", thinking="")) is not None


def test_who_had_a_part_gets_the_rest_and_who_had_all_gets_nothing() -> None:
    assert had({"text": "He"}, {"text": "llo"}).missed(1, answer()) is None
    missed = had({"thinking": "hm"}, {"text": "He"}).missed(1, answer())
    assert missed is not None and (missed.text, missed.thinking, missed.tool_calls) == ("llo", "", ())


def test_a_call_that_was_lost_comes_whole_and_one_that_broke_off_goes_on() -> None:
    lost = had({"text": "Hello"}).missed(1, answer(tool_calls=(CALL,)))
    assert lost is not None and (lost.text, lost.tool_calls) == ("", ({"index": 0, **CALL},))
    begun = {"index": 0, **CALL, "function": {"name": "add", "arguments": '{"a"'}}
    rest = had({"text": "Hello"}, {"tool_calls": (begun,)}).missed(1, answer(tool_calls=(CALL,)))
    assert rest is not None and rest.tool_calls == ({"index": 0, "function": {"arguments": ": 1}"}},)
