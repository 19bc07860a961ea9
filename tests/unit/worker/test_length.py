from __future__ import annotations

import pytest

from schemas.work import Body
from services.worker.length import most_tokens, prompt_tokens

HI = Body(messages=({"role": "user", "content": "Hi"},))
LONG = Body(messages=({"role": "user", "content": "word " * 2_000},))  # about 2,500 tokens


@pytest.mark.parametrize(
    ("window", "body", "most"),
    [
        (None, LONG, 16_384),
        (131_072, LONG, 16_384),
        (8_192, HI, 8_191),
        (8_192, LONG, 5_691),
        (4_096, Body(prompt="word " * 4_000), 1_024),
    ],
)
def test_an_answer_without_a_clients_limit_ends_at_the_owners_and_before_the_window_does(
    window: int | None, body: Body, most: int
) -> None:
    assert most_tokens(16_384, window, body) == most


def test_an_owners_small_limit_needs_no_window() -> None:
    assert most_tokens(500, 4_096, LONG) == 500


def test_whatever_becomes_a_part_of_the_prompt_takes_room() -> None:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    parts = [{"type": "text", "text": "Hi"}, {"type": "image_url", "image_url": {"url": "data:," + "A" * 9_000}}]
    assert prompt_tokens(Body(messages=({"role": "user", "content": parts},))) == prompt_tokens(HI) == 1
    assert prompt_tokens(Body(messages=HI.messages, extra={"tools": tools})) > 15
    call = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Kyoto"}'}}
    assert (
        prompt_tokens(Body(messages=(*HI.messages, {"role": "assistant", "content": None, "tool_calls": [call]}))) > 15
    )
