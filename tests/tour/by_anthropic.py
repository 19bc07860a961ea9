"""The tour of the official ``anthropic`` client for Python."""

from __future__ import annotations

from typing import Any

import anthropic

from support.toured import PICTURE
from tour.by_openai import CITY, LONG
from tour.observing import Seen, errors, flat

HI: list[Any] = [{"role": "user", "content": "Say hello to your friend."}]
WEATHER: list[Any] = [{"role": "user", "content": "How is the weather in Tokyo? Use the tool."}]
TOOLS: list[Any] = [{"name": "get_weather", "description": "The weather of a city", "input_schema": CITY}]
COLD: dict[str, Any] = {"extra_body": {"temperature": 0.0}}
FEW: dict[str, Any] = {"max_tokens": 24, **COLD}


async def tour(url: str, model: str, *, words: bool) -> Seen:
    async with anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=2, timeout=120) as client:
        create = client.messages.create
        calling: Any = {"tools": TOOLS, "tool_choice": {"type": "any"}, "max_tokens": 64, **COLD}
        call = await create(model=model, messages=WEATHER, **calling)
        seen = {
            "whole": flat(await create(model=model, messages=HI, system="You are kind.", **FEW), words=words),
            "length": flat(await create(model=model, messages=HI, max_tokens=1, **COLD), words=words),
            "stream": await _streamed(client, {"model": model, "messages": HI, **FEW}, words=words),
            "tool call": flat(call, words=words),
            "tool call streamed": await _streamed(
                client, {"model": model, "messages": WEATHER, **calling}, words=words
            ),
            "count_tokens": flat(await client.messages.count_tokens(model=model, messages=HI)),
            "error: no such path": await errors(client.post("/v1/nonsense", body={}, cast_to=object)),
        }
        many: Any = [{"role": "user", "content": "water " * 5_000}]
        if not words:
            return seen | {"error: too long": await errors(create(model=model, messages=many, max_tokens=4))}
        return seen | await _rest(client, model, call)


async def _streamed(client: anthropic.AsyncAnthropic, asked: dict[str, Any], *, words: bool) -> Seen:
    """The kinds of events in their order, each once in a row, and the message that the client makes of them."""
    kinds: list[str] = []
    async with client.messages.stream(**asked) as streamed:
        async for event in streamed:
            if event.type not in kinds[-1:]:
                kinds.append(event.type)
        message = await streamed.get_final_message()
    pairs = [kind for kind in kinds if kind not in ("text", "input_json")]  # of the client's own making
    once = [kind for at, kind in enumerate(pairs) if kind not in pairs[max(0, at - 1) : at]]
    return {"events": " ".join(once), "message": flat(message, words=words)}


async def _rest(client: anthropic.AsyncAnthropic, model: str, call: Any) -> Seen:
    """What a small real model cannot do."""
    used = next(block for block in call.content if block.type == "tool_use")
    result = {"type": "tool_result", "tool_use_id": used.id, "content": "21 degrees"}
    said: Any = {"role": "assistant", "content": [block.model_dump() for block in call.content]}
    after: Any = [*WEATHER, said, {"role": "user", "content": [result]}]
    source = {"type": "base64", "media_type": "image/png", "data": PICTURE}
    shown: Any = [{"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": "What?"}]}]
    return {
        "tool result": flat(await client.messages.create(model=model, messages=after, tools=TOOLS, **FEW)),
        "image": flat(await client.messages.create(model=model, messages=shown, max_tokens=24)),
        "60,000 tokens": flat(
            await client.messages.create(model=model, messages=[{"role": "user", "content": LONG}], max_tokens=24)
        ),
    }
