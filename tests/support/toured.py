"""A model server with a script, in OpenAI's form and in Ollama's: what the official clients are shown, directly and through us.

Answers "did it arrive whole?": it looks at images and long prompts and says what it saw. Nothing here knows Headrace. It answers
what comes with tools by calling the first of them, and everything else by what ``said`` says.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse

from services.router.http.serving import serving

MODEL, EMBEDDER = "painter:1b", "embedder:1b"
PICTURE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 64).decode()
SEEN = hashlib.sha256(base64.b64decode(PICTURE)).hexdigest()[:12]
GREETING = "Hello there, my good friend."
VECTOR = [0.5, -0.25, 0.125, 1.0]
ARGUMENTS = '{"city": "Tokyo"}'
DETAILS = {
    "parent_model": "", "format": "gguf", "family": "painter", "families": ["painter"], "parameter_size": "1B",
    "quantization_level": "Q4_0",
}  # fmt: skip
NOT_FOUND = {"error": {"message": "not found", "type": "invalid_request_error", "param": None, "code": None}}


def said(texts: list[str], images: list[str]) -> str:
    """The answer to the last message."""
    if images:
        return " ".join(f"I see {hashlib.sha256(base64.b64decode(image)).hexdigest()[:12]}." for image in images)
    last = texts[-1]
    if last.startswith("Count"):
        return f"I read {len(last)} characters ending in {last[-8:]}."
    return GREETING


@asynccontextmanager
async def toured(*, as_ollama: bool = False) -> AsyncIterator[str]:
    """The URL of one that serves while the block runs."""
    app = FastAPI(openapi_url=None)
    (_ollama if as_ollama else _openai)(app)
    for kind in (AttributeError, IndexError, KeyError, TypeError, ValueError):
        app.add_exception_handler(kind, _refuse)
    async with serving(app, "127.0.0.1", 0, drain_s=1) as url:
        yield url


async def _refuse(_request: Request, error: Exception) -> Response:
    """What it cannot read is a bad request, as everywhere."""
    return JSONResponse({"error": f"bad request: {error!r}"}, 400)


# -- OpenAI's form -----------------------------------------------------------------------------------------------------------


def _openai(app: FastAPI) -> None:
    @app.get("/v1/models")
    async def models() -> Response:
        row = {"object": "model", "created": 1, "owned_by": "vllm"}
        return JSONResponse({"object": "list", "data": [{"id": name, **row} for name in (MODEL, EMBEDDER)]})

    @app.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        asked = await request.json()
        if not asked.get("messages"):
            return JSONResponse({"error": {"message": "messages is empty", "type": "BadRequestError"}}, 400)
        texts, images = _read(asked["messages"])
        call = bool(asked.get("tools")) and asked["messages"][-1]["role"] == "user"
        words, reason = _cut(said(texts, images), asked.get("max_tokens"), asked.get("stop"))
        words, reason = ([], "tool_calls") if call else (words, reason)
        head = {"id": "chatcmpl-1", "created": 1, "model": asked["model"]}
        usage = _usage(sum(map(len, texts)) // 4, len(words))
        if asked.get("stream"):
            told = usage if (asked.get("stream_options") or {}).get("include_usage") else None
            lines = _chunks(head, words, reason, asked["tools"] if call else None, told)
            return StreamingResponse(lines, media_type="text/event-stream")
        message: dict[str, Any] = {"role": "assistant", "content": "".join(words) or None}
        if call:
            message["tool_calls"] = [_call(asked["tools"], ARGUMENTS)]
        choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
        return JSONResponse({**head, "object": "chat.completion", "choices": [choice], "usage": usage})

    @app.post("/v1/embeddings")
    async def embeddings(request: Request) -> Response:
        asked = await request.json()
        inputs = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        rows = [{"object": "embedding", "index": at, "embedding": VECTOR} for at in range(len(inputs))]
        return JSONResponse(
            {"object": "list", "model": asked["model"], "data": rows, "usage": {"prompt_tokens": 3, "total_tokens": 3}}
        )

    @app.exception_handler(404)
    async def unknown(_request: Request, _error: Exception) -> Response:
        return JSONResponse(NOT_FOUND, 404)


def _read(messages: list[dict[str, Any]]) -> tuple[list[str], list[str]]:
    """All texts, and the images of the last message."""
    texts, images = [], list[str]()
    for message in messages:
        content = message.get("content") or ""
        parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts.append("".join(part["text"] for part in parts if part["type"] == "text"))
        images = [part["image_url"]["url"].partition(",")[2] for part in parts if part["type"] == "image_url"]
    return texts, images


def _cut(text: str, most: int | None, stop: Any) -> tuple[list[str], str]:
    """The words, and why there are no more."""
    for mark in [stop] if isinstance(stop, str) else stop or ():
        if mark in text:
            text = text.partition(mark)[0]
    words = [f"{word} " for word in text.split(" ")]
    words[-1] = words[-1].removesuffix(" ")
    return (words[:most], "length") if most is not None and most < len(words) else (words, "stop")


def _usage(prompt: int, output: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}


def _call(tools: list[dict[str, Any]], arguments: str) -> dict[str, Any]:
    function = {"name": tools[0]["function"]["name"], "arguments": arguments}
    return {"id": "call_1", "type": "function", "function": function}


async def _chunks(
    head: dict[str, Any], words: list[str], reason: str, tools: list[dict[str, Any]] | None, usage: Any
) -> AsyncIterator[bytes]:
    def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return (
            b"data: " + json.dumps({**head, "object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"
        )

    yield chunk({"role": "assistant", "content": ""})
    for word in words:
        yield chunk({"content": word})
    if tools is not None:  # in two pieces, as most servers do
        yield chunk({"tool_calls": [{"index": 0, **_call(tools, ARGUMENTS[:6])}]})
        yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": ARGUMENTS[6:]}}]})
    yield chunk({}, reason)
    if usage is not None:
        yield (
            b"data: " + json.dumps({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage}).encode()
        )
        yield b"\n\n"
    yield b"data: [DONE]\n\n"


# -- Ollama's form -----------------------------------------------------------------------------------------------------------


def _ollama(app: FastAPI) -> None:
    names = {MODEL: ["completion", "tools", "vision"], EMBEDDER: ["embedding"]}

    def missing(asked: dict[str, Any]) -> Response | None:
        name = asked.get("model") or ""
        return None if name in names else JSONResponse({"error": f"model '{name}' not found"}, 404)

    @app.get("/")
    async def there() -> Response:
        return PlainTextResponse("Ollama is running")

    @app.get("/api/version")
    async def version() -> Response:
        return JSONResponse({"version": "0.24.0"})

    @app.get("/api/tags")
    async def tags() -> Response:
        return JSONResponse({"models": [_row(name) for name in names]})

    @app.get("/api/ps")
    async def running() -> Response:
        last = {"expires_at": "2318-01-01T00:00:00Z", "size_vram": 0, "context_length": 131072}
        return JSONResponse({"models": [_row(name) | last for name in names]})

    @app.post("/api/show")
    async def show(request: Request) -> Response:
        asked = await request.json()
        name = asked.get("model") or ""
        info = {"general.architecture": "painter", "painter.context_length": 131072}
        return missing(asked) or JSONResponse(
            {"modelfile": "FROM x", "details": DETAILS, "model_info": info, "capabilities": names[name]}
        )

    @app.post("/api/chat")
    async def chat(request: Request) -> Response:
        asked = await request.json()
        if (gone := missing(asked)) is not None:
            return gone
        last = asked["messages"][-1]
        calls = _ollama_calls(asked["tools"]) if asked.get("tools") and last["role"] == "user" else []
        text = (
            ""
            if calls
            else said([message.get("content") or "" for message in asked["messages"]], last.get("images") or [])
        )
        return _lines(asked, text, lambda word: {"message": {"role": "assistant", "content": word}}, calls)

    @app.post("/api/generate")
    async def generate(request: Request) -> Response:
        asked = await request.json()
        text = said([asked.get("prompt") or ""], asked.get("images") or [])
        return missing(asked) or _lines(asked, text, lambda word: {"response": word}, [])

    @app.post("/api/pull")
    async def pull() -> Response:
        lines = [{"status": "pulling manifest"}, {"status": "success"}]
        return StreamingResponse((json.dumps(line) + "\n" for line in lines), media_type="application/x-ndjson")

    @app.post("/api/embed")
    async def embed(request: Request) -> Response:
        asked = await request.json()
        inputs = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        figures = {"total_duration": 30_000, "load_duration": 10_000, "prompt_eval_count": 3}
        return missing(asked) or JSONResponse(
            {"model": asked["model"], "embeddings": [VECTOR] * len(inputs), **figures}
        )

    @app.post("/api/embeddings")
    async def embeddings(request: Request) -> Response:
        return missing(await request.json()) or JSONResponse({"embedding": VECTOR})


def _row(name: str) -> dict[str, Any]:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return {
        "name": name, "model": name, "modified_at": "2026-01-01T00:00:00Z", "size": 1_000_000_000, "digest": digest,
        "details": DETAILS,
    }  # fmt: skip


def _ollama_calls(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"function": {"index": 0, "name": tools[0]["function"]["name"], "arguments": json.loads(ARGUMENTS)}}]


def _lines(asked: dict[str, Any], text: str, told: Any, calls: list[dict[str, Any]]) -> Response:
    options = asked.get("options") or {}
    most = options.get("num_predict")
    words, reason = _cut(text, most if most is not None and most >= 0 else None, options.get("stop"))
    head = {"model": asked["model"], "created_at": "2026-01-01T00:00:00.000001Z"}
    # Short, since a worker does not believe a server whose times are longer than the request took.
    ns = {
        "total_duration": 90_000,
        "load_duration": 1_000_000,
        "prompt_eval_duration": 2_000_000,
        "eval_duration": 50_000,
    }
    end = {"done": True, "done_reason": reason, "prompt_eval_count": 7, "eval_count": max(1, len(words)), **ns}
    if asked.get("stream") is False:
        whole = told("".join(words))
        if calls:
            whole["message"]["tool_calls"] = calls
        return JSONResponse({**head, **whole, **end})
    frames = [{**head, **told(word), "done": False} for word in words]
    if calls:
        frames = [{**head, "message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": False}]

    async def lines() -> AsyncIterator[bytes]:
        for frame in [*frames, {**head, **told(""), **end}]:
            yield json.dumps(frame).encode() + b"\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson")
