"""The tour of the official ``ollama`` client for Python."""

from __future__ import annotations

from typing import Any

import ollama

from support.toured import EMBEDDER, PICTURE
from tour.by_openai import HI, LONG, TOOLS, WEATHER
from tour.observing import Seen, errors, flat, stream

FEW = {"num_predict": 24, "temperature": 0.0, "seed": 1}


async def tour(url: str, model: str, *, words: bool) -> Seen:
    async with ollama.AsyncClient(host=url, timeout=120) as client:
        seen = await _asked(client, model, words=words)
        return seen | (await _rest(client, model) if words else {})


async def _asked(client: ollama.AsyncClient, model: str, *, words: bool) -> Seen:
    streamed = await client.chat(model, HI, stream=True, options=FEW)
    generated = await client.generate(model, "Say hello.", stream=True, options=FEW)
    listed = {each.model: each for each in (await client.list()).models}
    seen: Seen = {
        "list": flat(listed[model]) if model in listed else {},
        "chat": flat(await client.chat(model, HI, options=FEW), words=words),
        "chat streamed": stream(
            [part async for part in streamed], lambda part: part["message"]["content"], words=words
        ),
        "chat cut": flat(await client.chat(model, HI, options=FEW | {"num_predict": 1}), words=words),
        "generate": flat(await client.generate(model, "Say hello.", options=FEW), words=words),
        "generate streamed": stream([part async for part in generated], lambda part: part["response"], words=words),
        "running": await _running(client, model),
        "error: unknown model": await errors(client.chat("no-such-model", HI)),
        "error: unknown model shown": await errors(client.show("no-such-model")),
        "error: unknown model embeds": await errors(client.embed("no-such-model", "a")),
        "error: no model": await errors(client.chat("", HI)),
    }
    shown = await client.show(model)
    seen["show"] = {"capabilities": " ".join(shown.capabilities or ()), "details": flat(shown.details)}
    return seen


async def _running(client: ollama.AsyncClient, model: str) -> Seen:
    """With the sizes themselves: they are the machine's, however it is asked."""
    row = next((each for each in (await client.ps()).models if each.model == model), None)
    return {} if row is None else flat(row) | {"in memory": {"bytes": row.size, "on the GPU": row.size_vram}}


async def _rest(client: ollama.AsyncClient, model: str) -> Seen:
    """What a small real model cannot do."""
    image: Any = [{"role": "user", "content": "What?", "images": [PICTURE]}]
    long: Any = [{"role": "user", "content": LONG}]
    calls = await client.chat(model, WEATHER, tools=TOOLS)
    streamed = await client.chat(model, WEATHER, tools=TOOLS, stream=True)
    after: Any = [*WEATHER, calls.message, {"role": "tool", "tool_name": "get_weather", "content": "21 degrees"}]
    return {
        "tool call": flat(calls),
        "tool call streamed": stream([part async for part in streamed], lambda part: part["message"]["content"]),
        "tool result": flat(await client.chat(model, after, tools=TOOLS)),
        "image": flat(await client.chat(model, image)),
        "image generated": flat(await client.generate(model, "What?", images=[PICTURE])),
        "60,000 tokens": flat(await client.chat(model, long, options={"num_ctx": 65_536})),
        "embed": flat(await client.embed(EMBEDDER, ["a", "b"])),
        "embeddings": flat(await client.embeddings(EMBEDDER, "a")),
    }
