from __future__ import annotations

import json
from typing import Any

import pytest

from schemas.events import Times, Tokens
from services.router.http.ollama_reply import Frames, done_reason, figures
from services.router.port import TaskStatus, TokenUpdate

END = TaskStatus(task="t", state="completed", finish_reason="stop")


def said(*deltas: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The calls of each line."""
    frames = Frames("m", chat=True)
    data = [frames.token(TokenUpdate(attempt=1, index=at, tool_calls=(delta,))) for at, delta in enumerate(deltas)] + [
        frames.end(END, None, {})
    ]
    lines = [json.loads(line) for line in b"".join(data).splitlines()]
    return [line["message"].get("tool_calls", []) for line in lines]


def delta(index: int, text: str, name: str = "", id: str | None = None) -> dict[str, Any]:
    return {"index": index, "id": id, "function": {"name": name, "arguments": text}}


def test_a_call_leaves_as_soon_as_its_object_is_closed_and_never_again() -> None:
    lines = said(delta(0, '{"a":', "f", "x"), delta(0, " {}"), delta(0, "}"), delta(1, "{}", "g", "y"))
    assert [[call["function"]["name"] for call in calls] for calls in lines] == [["f"], ["g"], []]
    assert [call["function"]["index"] for calls in lines for call in calls] == [0, 1]


def test_a_call_without_arguments_comes_at_the_end() -> None:
    lines = said(delta(0, "", "now", "x"))
    assert [[call["function"] for call in calls] for calls in lines] == [
        [{"index": 0, "name": "now", "arguments": {}}],
        [],
    ]


def test_a_brace_inside_a_text_closes_nothing() -> None:
    lines = said(delta(0, '{"code": "if {}', "f", "x"), delta(0, '"}'))
    assert [call["function"]["arguments"] for calls in lines for call in calls] == [{"code": "if {}"}]


def test_figures_are_nanoseconds_and_what_is_unknown_or_zero_is_absent() -> None:
    times = Times(load_s=0.0, prefill_s=0.25, decode_s=None, total_s=1.5)
    assert figures(times, Tokens(prompt=5, cached=0)) == {
        "total_duration": 1_500_000_000,
        "prompt_eval_duration": 250_000_000,
        "prompt_eval_count": 5,
        "prompt_eval_cached_count": 0,
    }
    assert figures(None, Tokens()) == {}


@pytest.mark.parametrize(
    ("reason", "word"), [("stop", "stop"), ("tool_calls", "stop"), ("max_tokens", "length"), ("length", "length")]
)
def test_reasons_are_ollamas(reason: str, word: str) -> None:
    assert done_reason(reason) == word


def test_a_line_of_text_is_what_json_would_make_of_it() -> None:
    for chat, place in ((True, "message"), (False, "response")):
        frames = Frames('m"x', chat=chat)
        line = json.loads(frames.token(TokenUpdate(attempt=1, index=0, text='a\n"ä')))
        text = line[place]["content"] if chat else line[place]
        assert (line["model"], text, line["done"]) == ('m"x', 'a\n"ä', False)
        assert line["created_at"].endswith("Z") and len(line["created_at"]) == 27
