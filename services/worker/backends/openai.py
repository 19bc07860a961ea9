"""OpenAI-compatible servers: llama.cpp, vLLM, LM Studio and others that speak ``/v1``.

Answers "what does this server hold, and what does its stream say?", including llama.cpp's own ``timings`` and progress of the
prompt. Success is a ``finish_reason`` that was seen, nothing else: a dying server can end with a clean 200. It never asks
``/slots`` (that wakes a sleeping llama.cpp).
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import PurePath
from typing import Any

import httpx
import msgspec

from schemas.errors import BackendError
from schemas.events import Tokens
from schemas.overlong import is_overlong
from services.worker.backends import wire
from services.worker.backends.openai_body import LLAMA_CPP, LM_STUDIO, OTHER, VLLM, chat_body, to_the_window
from services.worker.backends.openai_deltas import Calls, logprobs_of
from services.worker.backends.port import (
    BackendModel,
    BackendRequest,
    BackendTimings,
    Chunk,
    Finish,
    Identity,
    Progress,
)

MS = 1e3
_NO_URLS = frozenset({LM_STUDIO})
"""Those that take images as data: URIs only."""
_EMBEDDER = re.compile(r"embed|minilm|\bbge|\be5\b|\bgte\b", re.I)


class OpenAI:
    """A Backend over ``/v1/*``. ``kind`` is what ``detect`` found; it only switches on what that server can do more."""

    def __init__(
        self, url: str, kind: str = OTHER, http: httpx.AsyncClient | None = None, *, connect_s: float = 5.0
    ) -> None:
        self.kind = kind
        self.url = url.rstrip("/").removesuffix("/v1")
        self._http = http or wire.client(self.url, connect_s=connect_s)

    async def identify(self) -> Identity:
        return Identity(kind=self.kind, version=await self._version(), backend_id=wire.backend_id(self.url))

    async def _version(self) -> str | None:
        path = {VLLM: "/version", LLAMA_CPP: "/props"}.get(self.kind)
        if path is None:
            return None
        try:
            body = await wire.ask(self._http, path)
        except BackendError as error:
            if error.failure != "rejected":
                raise
            return None
        return wire.words(body.get("version") or body.get("build_info"))

    async def inventory(self) -> list[BackendModel]:
        if self.kind == LM_STUDIO:
            listed = (await wire.ask(self._http, "/api/v0/models")).get("data") or []
        else:
            body = await wire.ask(self._http, "/v1/models")
            listed = [_with_capabilities(model, body) for model in body.get("data") or []]
        return [_describe(model, self.kind) for model in listed]

    async def residency(self) -> frozenset[str] | None:
        models = await self.inventory()
        if all(model.resident is None for model in models):
            return None
        return frozenset(model.name for model in models if model.resident)

    async def chat(self, request: BackendRequest) -> AsyncGenerator[Chunk | Finish]:
        last = _Last()
        async with self._asked(*chat_body(request, self.kind), last) as lines:
            async for line in lines:
                if line.startswith(b":"):
                    continue  # a keep-alive comment is not progress
                name, _, data = line.partition(b":")
                data = data.strip()
                if name in (b"event", b"id", b"retry"):
                    continue
                if name != b"data":
                    last.frame(wire.parse_object(line))  # an error as plain JSON, or text that is none of ours
                    continue
                if data == b"[DONE]":
                    break
                chunk = last.frame(wire.parse_object(data))
                if chunk is not None:
                    yield chunk
        yield last.finish()

    @asynccontextmanager
    async def _asked(self, path: str, body: dict[str, Any], last: _Last) -> AsyncIterator[AsyncIterator[bytes]]:
        """The lines of a reply. A limit beyond what the window leaves is no reason to refuse: the window ends the answer then."""
        async with AsyncExitStack() as stack:
            last.limit = body.get("max_tokens")
            try:
                lines = await stack.enter_async_context(wire.stream(self._http, path, body))
            except BackendError as error:
                unlimited = to_the_window(path, body, self.kind)
                if unlimited is None or error.failure != "rejected" or not is_overlong(error.detail):
                    raise
                last.limit = None
                lines = await stack.enter_async_context(wire.stream(self._http, path, unlimited))
            yield lines

    async def embed(self, request: BackendRequest) -> Finish:
        inputs = request.body.inputs or ((request.body.prompt,) if request.body.prompt else ())
        body = {**request.body.extra, "model": request.model, "input": list(inputs), "encoding_format": "float"}
        async with wire.stream(self._http, "/v1/embeddings", body) as lines:
            frame = wire.parse_object(b"".join([line async for line in lines]))
        listed = sorted(frame.get("data") or (), key=lambda entry: int(entry.get("index", 0)))
        vectors = tuple(tuple(float(x) for x in entry["embedding"]) for entry in listed)
        if len(vectors) != len(inputs):
            raise BackendError("protocol", f"{len(vectors)} embeddings for {len(inputs)} texts")
        tokens = Tokens(prompt=wire.count((frame.get("usage") or {}).get("prompt_tokens")))
        return Finish(finish_reason="stop", model=wire.words(frame.get("model")), tokens=tokens, vectors=vectors)

    async def aclose(self) -> None:
        await self._http.aclose()


class _Last:
    """What a stream has said so far, beyond its text: it comes in any order, and some of it after the finish reason."""

    def __init__(self) -> None:
        self.finish_reason: str | None = None
        self.model: str | None = None
        self.usage: dict[str, Any] = {}
        self.timings: dict[str, Any] = {}
        self.limit: int | None = None
        self.stopped_by: str | None = None
        self.calls = Calls()
        self.said_text = False

    def frame(self, frame: dict[str, Any]) -> Chunk | None:
        if error := frame.get("error"):
            text = wire.message_of(_error_text(error))
            status = error.get("code") if isinstance(error, dict) else None
            raise wire.from_status(status, _error_text(error)) if isinstance(status, int) else wire.from_text(text)
        self.model = wire.words(frame.get("model")) or self.model
        self.usage = frame.get("usage") or self.usage
        self.timings = frame.get("timings") or self.timings
        choice: dict[str, Any] = next(iter(frame.get("choices") or ()), {})
        self.finish_reason = wire.words(choice.get("finish_reason")) or self.finish_reason
        self.stopped_by = _stop_word(frame, choice) or self.stopped_by
        delta = choice.get("delta") or self._whole_message(choice.get("message") or {})
        progress = frame.get("prompt_progress")
        chunk = Chunk(
            text=delta.get("content") or choice.get("text") or "",
            thinking=delta.get("reasoning_content") or delta.get("reasoning") or "",
            tool_calls=self.calls.numbered(delta.get("tool_calls") or ()),
            logprobs=logprobs_of(choice.get("logprobs")),
            progress=Progress(processed=progress["processed"], total=progress["total"]) if progress else None,
        )
        self.said_text = self.said_text or bool(chunk.text)
        return chunk if chunk.is_token or chunk.progress else None

    def _whole_message(self, message: dict[str, Any]) -> dict[str, Any]:
        """Some servers end a stream with the whole message: what was not said before counts (case 35)."""
        return {
            "content": None if self.said_text else message.get("content"),
            "tool_calls": () if self.calls.any else message.get("tool_calls"),
        }

    def finish(self) -> Finish:
        if self.finish_reason is None:
            raise BackendError("protocol", "the stream ended with HTTP 200 and without a finish_reason")
        return Finish(
            finish_reason=self.finish_reason,
            model=self.model,
            limit=self.limit,
            stopped_by=self.stopped_by,
            tokens=self._tokens(),
            timings=BackendTimings(
                prefill_us=wire.micros(self.timings.get("prompt_ms"), MS),
                decode_us=wire.micros(self.timings.get("predicted_ms"), MS),
            ),
        )

    def _tokens(self) -> Tokens:
        usage, timings = self.usage, self.timings
        cached = wire.count(timings.get("cache_n"))
        if cached is None:
            cached = wire.count((usage.get("prompt_tokens_details") or {}).get("cached_tokens"))
        prompt = wire.count(usage.get("prompt_tokens"))
        new = wire.count(timings.get("prompt_n"))
        if prompt is None and new is not None:
            prompt = new + (cached or 0)
        output = wire.count(usage.get("completion_tokens"))
        return Tokens(
            prompt=prompt,
            cached=cached,
            output=output if output is not None else wire.count(timings.get("predicted_n")),
            thinking=wire.count((usage.get("completion_tokens_details") or {}).get("reasoning_tokens")),
        )


def _stop_word(frame: dict[str, Any], choice: dict[str, Any]) -> str | None:
    """vLLM's ``stop_reason``, which for a token is a number; llama.cpp's word, in its OpenAI form only where it logs much."""
    told = frame.get("__verbose") or frame
    return wire.words(choice.get("stop_reason")) or wire.words(told.get("stopping_word"))


def _error_text(error: Any) -> str:
    """An error object as the text that ``wire`` classifies."""
    return error if isinstance(error, str) else msgspec.json.encode({"error": error}).decode()


def _describe(model: dict[str, Any], kind: str) -> BackendModel:
    meta = model.get("meta") or {}
    name = str(model["id"])
    return BackendModel(
        name=name,
        bytes=wire.count(meta.get("size")),
        quantisation=wire.words(meta.get("ftype") or model.get("quantization")),
        context=wire.count(
            meta.get("n_ctx")
            or model.get("loaded_context_length")
            or model.get("max_model_len")
            or model.get("max_context_length")
        ),
        capabilities=_capabilities(model, name),
        lacks=(*(["vision"] if _sees(model) is False else []), *(["image_urls"] if kind in _NO_URLS else [])),
        resident=_is_resident(model, kind),
        aliases=tuple(alias for alias in model.get("aliases") or () if alias != name),
        family=wire.words(model.get("arch")),
        parameter_size=_human(wire.count(meta.get("n_params"))),
    )


def _human(parameters: int | None) -> str | None:
    """134.52M, 7.6B: as Ollama writes it, so that clients see one form."""
    if not parameters:
        return None
    for size, letter, digits in ((1e9, "B", 1), (1e6, "M", 2)):
        if parameters >= size:
            return f"{parameters / size:.{0 if parameters % size == 0 else digits}f}{letter}"
    return f"{parameters / 1e3:.0f}K"


def _is_resident(model: dict[str, Any], kind: str) -> bool | None:
    if state := (model.get("status") or {}).get("value") or model.get("state"):
        return bool(state == "loaded")
    return True if kind in (LLAMA_CPP, VLLM) else None  # these two hold what they were started with


def _with_capabilities(model: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
    """llama.cpp tells what a model takes in a second list, made for clients of Ollama."""
    told: dict[str, Any] = next(
        (other for other in body.get("models") or () if other.get("name") == model.get("id")), {}
    )
    return {**model, "capabilities": told["capabilities"]} if told.get("capabilities") else model


def _capabilities(model: dict[str, Any], name: str) -> tuple[str, ...]:
    """LM Studio says what a model takes; of the others' models only what their name tells is known."""
    if _is_embedder(model, name):
        return ("embedding",)
    takes_tools = "tool_use" in (model.get("capabilities") or ())
    return ("completion", *(["tools"] if takes_tools else []), *(["vision"] if _sees(model) else []))


def _sees(model: dict[str, Any]) -> bool | None:
    """Whether it takes images: LM Studio's ``type``, llama.cpp's modalities or, in older builds, capabilities; None unsaid."""
    if (kind := model.get("type")) in ("llm", "vlm"):
        return bool(kind == "vlm")
    if modalities := (model.get("architecture") or {}).get("input_modalities"):
        return "image" in modalities
    told = model.get("capabilities") or ()
    return ("multimodal" in told) if "completion" in told else None


def _is_embedder(model: dict[str, Any], name: str) -> bool:
    """LM Studio says it; the others only by the name."""
    if kind := model.get("type"):
        return bool(kind == "embeddings")
    return _EMBEDDER.search(PurePath(name).name) is not None
