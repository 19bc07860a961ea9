"""The tour of the official ``openai`` client for Python. ``words``: whether the model's words can be known beforehand."""

from __future__ import annotations

from typing import Any

import openai

from support.llama import MODEL as SMOL
from support.toured import EMBEDDER, PICTURE
from tour.observing import Seen, errors, flat, stream

HI: list[Any] = [{"role": "user", "content": "Say hello to your friend."}]
WEATHER: list[Any] = [{"role": "user", "content": "How is the weather in Tokyo? Use the tool."}]
CITY = {"type": "object", "properties": {"city": {"type": "string", "enum": ["Tokyo"]}}, "required": ["city"]}
FUNCTION = {"name": "get_weather", "description": "The weather of a city", "parameters": CITY}
TOOLS: list[Any] = [{"type": "function", "function": FUNCTION}]
FORM: Any = {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY, "strict": True}}
LONG = "Count the characters: " + "water " * 60_000
"""60,000 tokens in any tokeniser that knows the word."""
FEW: dict[str, Any] = {"max_tokens": 24, "temperature": 0.0, "seed": 1}


async def tour(url: str, model: str, *, words: bool) -> Seen:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=2, timeout=120) as client:
        seen = await _chats(client, model, words=words)
        seen |= await _tools(client, model, words=words)
        seen |= await _errors(client, model)
        # The stand-ins do not speak it, and Ollama says "completed" of an answer that was cut off.
        seen |= await _responses(client, model) if model == SMOL else {}
        return seen | (await _rest(client, model) if words else {})


def delta(chunk: Any) -> str:
    return "".join((choice["delta"].get("content") or "") for choice in chunk["choices"])


async def _chats(client: openai.AsyncOpenAI, model: str, *, words: bool) -> Seen:
    create = client.chat.completions.create
    listed = {each.id: each async for each in client.models.list()}
    usage: Any = {"include_usage": True}
    counted = await create(model=model, messages=HI, stream=True, stream_options=usage, **FEW)
    streamed = await create(model=model, messages=HI, stream=True, **FEW)
    one: Any = FEW | {"max_tokens": 1}
    return {
        "model": {"listed": model in listed, "object": listed[model].object},
        "whole": flat(await create(model=model, messages=HI, **FEW), words=words),
        "length": flat(await create(model=model, messages=HI, **one), words=words),
        "stream": stream([chunk async for chunk in streamed], delta, words=words),
        "stream with usage": stream([chunk async for chunk in counted], delta, words=words),
        "schema": flat(await create(model=model, messages=HI, response_format=FORM, **FEW)),
        "stop": flat(await create(model=model, messages=HI, stop=[" my", "e", " "], **FEW), words=words),
    }


async def _tools(client: openai.AsyncOpenAI, model: str, *, words: bool) -> Seen:
    create = client.chat.completions.create
    told: Any = {"tools": TOOLS, "tool_choice": "required", "temperature": 0.0, "max_tokens": 64}
    try:
        whole = await create(model=model, messages=WEATHER, **told)
    except openai.BadRequestError as error:  # the server says that its model knows no tools
        return {"tool call": {"raised": type(error).__name__, "status": error.status_code}}
    streamed = await create(model=model, messages=WEATHER, stream=True, **told)
    seen = {
        "tool call": flat(whole, words=words),
        "tool call streamed": calls_of([chunk async for chunk in streamed]),
    }
    call = whole.choices[0].message.tool_calls
    if call is None:  # the small model's template knows no tools
        return seen
    said = whole.choices[0].message.model_dump(include={"role", "content", "tool_calls"})
    result = {"role": "tool", "tool_call_id": call[0].id, "content": "21 degrees"}
    after: Any = [*WEATHER, said, result]
    return seen | {"tool result": flat(await create(model=model, messages=after, tools=TOOLS, **FEW), words=words)}


async def _responses(client: openai.AsyncOpenAI, model: str) -> Seen:
    told: Any = {"model": model, "input": "Say hello.", "max_output_tokens": 24, "temperature": 0.0}
    whole = await client.responses.create(**told)
    kinds: list[str] = []
    async for event in await client.responses.create(stream=True, **told):
        if event.type not in kinds:
            kinds.append(event.type)
    last: Any = event
    return {
        "response": flat(whole, words=False),
        "response streamed": {"events": " ".join(kinds), "status": last.response.status},
    }


def calls_of(chunks: list[Any]) -> Seen:
    """The calls that a client joins from the deltas, and why the stream ended."""
    joined: dict[int, dict[str, str]] = {}
    reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices if choice.finish_reason]
    for part in (part for chunk in chunks for choice in chunk.choices for part in choice.delta.tool_calls or ()):
        call = joined.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
        call["id"] += "str" if part.id else ""
        if part.function is not None:
            call["name"] += part.function.name or ""
            call["arguments"] += part.function.arguments or ""
    return {"calls": {str(at): call for at, call in joined.items()}, "finish_reason": " ".join(reasons)}


async def _errors(client: openai.AsyncOpenAI, model: str) -> Seen:
    create, post = client.chat.completions.create, client.post
    many: Any = {"role": "user", "content": "water " * 5_000}
    seen = {
        "error: no messages": await errors(post("/chat/completions", body={"model": model}, cast_to=object)),
        "error: no such path": await errors(post("/nonsense", body={}, cast_to=object)),
    }
    if model == SMOL:  # Ollama would cut it, and read 2,000 tokens for that
        seen["error: too long"] = await errors(create(model=model, messages=[many], max_tokens=4))
    return seen


async def _rest(client: openai.AsyncOpenAI, model: str) -> Seen:
    """What a small real model cannot do."""
    create, image = client.chat.completions.create, {"url": f"data:image/png;base64,{PICTURE}"}
    shown: Any = [
        {"role": "user", "content": [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": image}]}
    ]
    streamed = await create(model=model, messages=[{"role": "user", "content": LONG}], stream=True)
    return {
        "image": flat(await create(model=model, messages=shown, max_tokens=24)),
        "60,000 tokens": stream([chunk async for chunk in streamed], delta),
        "embeddings": flat(await client.embeddings.create(model=EMBEDDER, input=["a", "b"])),
        "embeddings as floats": flat(
            await client.embeddings.create(model=EMBEDDER, input="a", encoding_format="float")
        ),
    }
