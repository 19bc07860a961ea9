from __future__ import annotations

from typing import Any

import pytest

from services.worker.outcome import outcome_of

JAPANESE = "東京は日本の首都であり、世界でもっとも人口の多い都市のひとつです。東京は日本の首都であり、大きな都市です。"
ENGLISH = "Tokyo is the capital of Japan and one of the most populous cities of the world."


def judged(**changes: Any) -> str:
    usual: dict[str, Any] = {
        "text": "Tokyo.",
        "has_tool_calls": False,
        "finish_reason": "stop",
        "expected_models": {"qwen3", "qwen3:8b"},
        "answered_by": "qwen3:8b",
        "output_tokens": 3,
        "limit": None,
        "language": "en",
        "domain": "general",
    }
    return outcome_of(**(usual | changes))


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "ok"),
        ({"text": " \n"}, "empty"),
        ({"text": "", "has_tool_calls": True}, "ok"),
        ({"answered_by": None}, "ok"),
        ({"answered_by": "llama3"}, "substituted"),
        ({"answered_by": "llama3", "text": ""}, "substituted"),
        ({"finish_reason": "length"}, "truncated"),
        ({"finish_reason": "length", "limit": 100, "output_tokens": 40}, "truncated"),
        ({"finish_reason": "length", "limit": 40, "output_tokens": 40}, "ok"),
        ({"finish_reason": "length", "limit": 40, "output_tokens": None}, "ok"),
        ({"text": JAPANESE}, "wrong_language"),
        ({"text": ENGLISH, "language": "ja"}, "wrong_language"),
        ({"text": ENGLISH, "language": "ja", "domain": "translation"}, "ok"),
        ({"text": "Tokyo", "language": "ja"}, "ok"),
        ({"text": JAPANESE, "language": "ja"}, "ok"),
        ({"text": JAPANESE + ENGLISH}, "ok"),
        ({"text": JAPANESE, "language": None}, "ok"),
    ],
)
def test_an_answer_is_called_what_it_is(changes: dict[str, Any], outcome: str) -> None:
    assert judged(**changes) == outcome


def test_case_32_all_thinking_up_to_the_limit_is_empty_and_not_truncated() -> None:
    assert judged(text="", finish_reason="length", limit=None, output_tokens=4096) == "empty"
    assert judged(text="", finish_reason="length", limit=50, output_tokens=50) == "empty"
