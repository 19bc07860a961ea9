"""A deterministic HTTP stub with the faces of Ollama, vLLM and LM Studio, for what a real server will not do on demand.

Each streamed request plays a script: bytes as they go over the wire, gates, resets, hang-ups. What it saw is in ``requests``;
``client_gone`` is set when a client closed a stream before its end.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from support.listener import Listener


class Hang:
    """Say nothing more until the client goes."""


class Reset:
    """End with a TCP reset."""


class Fin:
    """Close without HTTP's own end."""


@dataclass
class Gate:
    """Wait for the test."""

    opened: asyncio.Event = field(default_factory=asyncio.Event)


Step = bytes | Hang | Reset | Fin | Gate


@dataclass
class Script:
    steps: Sequence[Step]
    status: int = 200
    content_type: str = "application/json"


@dataclass
class Seen:
    method: str
    path: str
    body: dict[str, Any]


class Stub(Listener):
    """``pages``: path -> JSON value, or an exception's status as an int. ``talk``: request -> script for streamed paths."""

    def __init__(
        self,
        pages: dict[str, Any],
        stream_paths: frozenset[str],
        talk: Callable[[str, dict[str, Any]], Script],
        server: str = "",
    ) -> None:
        super().__init__()
        self.pages = pages
        self.scripts: list[Script] = []
        self.requests: list[Seen] = []
        self.client_gone = asyncio.Event()
        self._stream_paths = stream_paths
        self._talk = talk
        self._server_header = f"Server: {server}\r\n" if server else ""

    def chats(self) -> list[dict[str, Any]]:
        """The bodies of all streamed requests so far."""
        return [seen.body for seen in self.requests if seen.path in self._stream_paths]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split("\r\n", 1)[0].split(" ")
        length = next(
            (int(line.split(":")[1]) for line in head.lower().split("\r\n") if line.startswith("content-length")), 0
        )
        body = json.loads(await reader.readexactly(length)) if length else {}
        self.requests.append(Seen(method, path, body))
        if path in self._stream_paths:
            script = self.scripts.pop(0) if self.scripts else self._talk(path, body)
            await self._play(script, reader, writer)
            return
        page = self.pages.get(path, 404)
        page = page(body) if callable(page) else page
        status, value = (page, {"error": f"status {page}"}) if isinstance(page, int) else (200, page)
        data = json.dumps(value).encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{self._server_header}"
            f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode()
            + data
        )
        await writer.drain()

    async def _play(self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (
            f"HTTP/1.1 {script.status} X\r\nContent-Type: {script.content_type}\r\n{self._server_header}"
            "Transfer-Encoding: chunked\r\n\r\n"
        ).encode()
        gone = asyncio.create_task(reader.read(1))  # a client that sends nothing more says goodbye with an empty read
        try:
            for step in script.steps:
                if isinstance(step, bytes):
                    writer.write(head + f"{len(step):x}\r\n".encode() + step + b"\r\n")
                    head = b""
                    await writer.drain()
                elif isinstance(step, Reset):
                    raw = writer.get_extra_info("socket")
                    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    writer.transport.abort()
                    return
                elif isinstance(step, Fin):
                    return
                else:
                    waits = [gone]
                    if isinstance(step, Gate):
                        waits.append(asyncio.create_task(step.opened.wait()))
                    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
                    for wait in waits[1:]:
                        wait.cancel()
                    if gone.done():
                        self.client_gone.set()
                        return
            writer.write(head + b"0\r\n\r\n")
            await writer.drain()
        finally:
            gone.cancel()
            await asyncio.gather(gone, return_exceptions=True)


def line(value: Any) -> bytes:
    """One NDJSON line."""
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def event(value: Any) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"

OLLAMA_STREAMS = frozenset({"/api/chat", "/api/generate", "/api/embed", "/api/pull"})
OPENAI_STREAMS = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/embeddings"})


def ollama_frame(text: str = "", **message: Any) -> bytes:
    return line(
        {
            "model": "m:latest",
            "created_at": "",
            "message": {"role": "assistant", "content": text, **message},
            "done": False,
        }
    )


def ollama_done(**fields: Any) -> bytes:
    """The last frame as Ollama 0.33 writes it, all durations in nanoseconds."""
    usual = {
        "model": "m:latest",
        "message": {"role": "assistant", "content": ""},
        "done": True,
        "done_reason": "stop",
        "total_duration": 900_000_000,
        "load_duration": 100_000_000,
        "prompt_eval_count": 20,
        "prompt_eval_duration": 200_000_000,
        "eval_count": 4,
        "eval_duration": 400_000_000,
    }
    return line({name: value for name, value in (usual | fields).items() if value is not None})


def openai_frame(text: str | None = None, finish_reason: str | None = None, **delta: Any) -> bytes:
    content = {} if text is None else {"content": text}
    return event({"model": "m", "choices": [{"index": 0, "delta": content | delta, "finish_reason": finish_reason}]})


def openai_usage(**fields: Any) -> bytes:
    usage = {"prompt_tokens": 20, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}}
    return event({"model": "m", "choices": [], "usage": usage} | fields)


def _words(body: dict[str, Any], limit: int) -> list[str]:
    """What the stand-ins answer: one word for each token asked for, so that limits are visible."""
    return [f"word{number} " for number in range(min(limit, 12))]


def _ollama_talk(path: str, body: dict[str, Any]) -> Script:
    if body["model"] not in ("m", "m:latest", "twin:latest"):
        return Script([line({"error": f"model '{body['model']}' not found"})], status=404)
    if path == "/api/embed":
        vectors = [[float(len(text)), 1.0] for text in body["input"]]
        return Script(
            [line({"model": body["model"], "embeddings": vectors, "total_duration": 5_000_000, "prompt_eval_count": 3})]
        )
    limit = body["options"]["num_predict"]
    words = _words(body, limit)
    name = "message" if path == "/api/chat" else "response"
    frames = [
        line(
            {
                "model": body["model"],
                name: {"role": "assistant", "content": word} if name == "message" else word,
                "done": False,
            }
        )
        for word in words
    ]
    reason = "length" if limit <= len(words) else "stop"
    return Script([*frames, ollama_done(model=body["model"], done_reason=reason, eval_count=len(words))])


def _openai_talk(path: str, body: dict[str, Any]) -> Script:
    if body["model"] not in ("m", "org/m"):
        message = f"The model `{body['model']}` does not exist."
        return Script([line({"error": {"message": message, "type": "NotFoundError", "code": 404}})], status=404)
    if path == "/v1/embeddings":
        data = [{"index": at, "embedding": [float(len(text)), 1.0]} for at, text in enumerate(body["input"])]
        return Script([line({"model": body["model"], "data": data[::-1], "usage": {"prompt_tokens": 3}})])
    most = body.get("max_tokens") or 4096
    words = _words(body, most)
    reason = "length" if most <= len(words) else "stop"

    def piece(text: str | None, finish: str | None) -> bytes:
        part = {"text": text or ""} if path == "/v1/completions" else {"delta": {"content": text} if text else {}}
        return event({"model": body["model"], "choices": [{"index": 0, **part, "finish_reason": finish}]})

    frames = [piece(word, None) for word in words]
    usage = {"prompt_tokens": 20, "completion_tokens": len(words), "prompt_tokens_details": {"cached_tokens": 0}}
    return Script([*frames, piece(None, reason), event({"model": body["model"], "choices": [], "usage": usage}), DONE])


def ollama_stand_in() -> Stub:
    """Two names of one digest, a third model, and a cloud stub that must not be offered."""
    details = {"format": "gguf", "family": "llama", "families": ["llama"], "quantization_level": "Q4_K_M"}
    loaded = {"size": 1_200_000, "size_vram": 0, "expires_at": "2026-11-29T12:05:00.5+09:00", "context_length": 4096}
    same = {"digest": "d1" * 32, "size": 1_000_000, "details": details}
    tags = [
        {"name": "m:latest", "model": "m:latest", **same},
        {"name": "twin:latest", "model": "twin:latest", **same},
        {"name": "big:70b", "model": "big:70b", "digest": "d2" * 32, "size": 40_000_000_000, "details": details},
        {"name": "cloud:671b", "digest": "d3" * 32, "size": 400, "remote_host": "https://cloud.example", "details": {}},
    ]
    pages = {
        "/api/version": {"version": "0.33.0"},
        "/api/tags": {"models": tags},
        "/api/ps": {"models": [{"name": "m:latest", "digest": "d1" * 32, **loaded}]},
        "/api/show": {"capabilities": ["completion", "tools"], "parameters": "num_ctx                        8192\nstop \"x\"",
                      "model_info": {"general.architecture": "llama", "llama.context_length": 131072}},
    }  # fmt: skip
    return Stub(pages, OLLAMA_STREAMS, _ollama_talk)


def vllm_stand_in() -> Stub:
    models = [{"id": "org/m", "object": "model", "owned_by": "vllm", "root": "org/m", "max_model_len": 4096}]
    pages = {"/v1/models": {"object": "list", "data": models}, "/version": {"version": "0.11.0"}}
    return Stub(pages, OPENAI_STREAMS, _openai_talk, server="uvicorn")


def lm_studio_stand_in() -> Stub:
    """It answers 200 with an error to paths that it does not have, as the real one does."""
    wrong = {"error": "Unexpected endpoint or method. (GET /api/version)"}
    models = [
        {"id": "m", "type": "llm", "state": "loaded", "max_context_length": 32768, "loaded_context_length": 4096},
        {"id": "nomic-embed", "type": "embeddings", "state": "not-loaded", "quantization": "F16", "max_context_length": 2048},
    ]  # fmt: skip
    pages = {
        "/api/version": wrong,
        "/api/v0/models": {"data": models},
        "/v1/models": {"data": [{"id": "m", "owned_by": "organization_owner"}]},
    }
    return Stub(pages, OPENAI_STREAMS, _openai_talk)
