from __future__ import annotations

from schemas.work import Body
from services.worker.freshness import REMEMBERED, Freshness


def chat(*texts: str) -> Body:
    return Body(messages=tuple({"role": "user", "content": text} for text in texts))


def test_a_prompt_is_new_once() -> None:
    fresh = Freshness()
    assert fresh.is_new("m", chat("What is the capital of Japan?"))
    assert not fresh.is_new("m", chat("What is the capital of Japan?"))
    assert fresh.is_new("other", chat("What is the capital of Japan?"))


def test_a_conversation_that_goes_on_is_not_new() -> None:
    fresh = Freshness()
    system = "You are a helpful assistant who answers in one short sentence and never makes anything up."
    assert fresh.is_new("m", chat(system, "one"))
    assert not fresh.is_new("m", chat(system, "two"))


def test_bare_prompts_and_parts_count_too() -> None:
    fresh = Freshness()
    assert fresh.is_new("m", Body(prompt="x" * 100 + "a"))
    assert not fresh.is_new("m", Body(prompt="x" * 100 + "b"))
    parts = Body(messages=({"role": "user", "content": [{"type": "text", "text": "look"}]},))
    assert fresh.is_new("m", parts)
    assert not fresh.is_new("m", parts)


def test_only_the_latest_are_remembered() -> None:
    fresh = Freshness()
    for number in range(REMEMBERED + 1):
        fresh.is_new("m", chat(f"{number} first"))
    assert not fresh.is_new("m", chat(f"{REMEMBERED} first"))
    assert fresh.is_new("m", chat("0 first"))
