"""A model that plays a coding agent's mind by a script: read the file, edit it, say that it is done. In OpenAI's form.

Answers "does an agent finish its work with these answers?". It looks at which tools there are and how many results came back, and
calls the next one of the script by whatever name and form the agent has for it. Nothing here knows Headrace.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from services.router.http.serving import serving

MODEL = "scripted:1b"
DONE = "The greeting is friendly now."


class Call(NamedTuple):
    tool: str
    arguments: dict[str, Any]


Steps = Callable[[frozenset[str]], list[Call]]
"""From the names of the tools there are to the calls, one for each turn."""


class Seen(NamedTuple):
    """``results`` are what the tools said; ``tools`` the names that were offered."""

    results: list[str]
    tools: frozenset[str]


@asynccontextmanager
async def scripted(steps: Steps) -> AsyncIterator[tuple[str, list[Seen]]]:
    """(its URL, what it saw at each turn that had tools)."""
    app, seen = FastAPI(openapi_url=None), list[Seen]()

    @app.get("/v1/models")
    async def models() -> Response:
        row = {"id": MODEL, "object": "model", "created": 1, "owned_by": "vllm", "max_model_len": 131_072}
        return JSONResponse({"object": "list", "data": [row]})

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        asked = await request.json()
        results = [_text(message) for message in asked["messages"] if message["role"] == "tool"]
        tools = frozenset(tool["function"]["name"] for tool in asked.get("tools") or ())
        call = None
        if tools:
            seen.append(Seen(results, tools))
            planned = steps(tools)
            call = planned[len(results)] if len(results) < len(planned) else None
        return StreamingResponse(_chunks(asked["model"], call, len(results)), media_type="text/event-stream")

    async with serving(app, "127.0.0.1", 0, drain_s=1) as url:
        yield url, seen


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


async def _chunks(model: str, call: Call | None, turn: int) -> AsyncIterator[bytes]:
    def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        value = {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": model,
            "choices": [choice],
            **more,
        }
        return b"data: " + json.dumps(value).encode() + b"\n\n"

    yield chunk({"role": "assistant", "content": ""})
    if call is None:
        for word in DONE.split(" "):
            yield chunk({"content": word + " "})
    else:
        arguments = json.dumps(call.arguments)
        function = {"name": call.tool, "arguments": arguments[:5]}
        yield chunk({"tool_calls": [{"index": 0, "id": f"call_{turn}", "type": "function", "function": function}]})
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": arguments[5:]}}]})
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    yield chunk({}, "stop" if call is None else "tool_calls", usage=usage)
    yield b"data: [DONE]\n\n"
