"""Ollama's own API: what does this Ollama hold, and what does its stream say?

Field meanings and their traps: zero is absent in every metric; ``load_duration`` contains the wait for the loader; a stream
can end without ``done``. It never sends ``keep_alive``: the owner of the machine decides what stays loaded. What is sent,
``ollama_body`` says.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncGenerator
from typing import Any

import httpx
import msgspec

from schemas.errors import BackendError, NoSuchModel
from schemas.events import Tokens
from services.worker.backends import wire
from services.worker.backends.ollama_body import chat_body, embed_body
from services.worker.backends.port import (
    BackendModel,
    BackendRequest,
    BackendTimings,
    Chunk,
    Finish,
    Identity,
    Memory,
    Pulled,
)
from services.worker.backends.thinking import think_at_ollama

NS = 1e-3
KNOWN = ("tools", "vision", "thinking")
"""Ollama names all that a model can do: what is not named it refuses."""
_NOT_THERE = re.compile(r"pull model manifest: (?:file does not exist|404)")
_REFUSED = re.compile(r"pull model manifest: 4\d\d|invalid model name|insecure protocol|unauthorized")
"""A registry's no: asking again does not help. Whatever else went wrong may be over later."""
PARAMETERS_CHARS = 4_000
"""A dozen words to stop at take 500. Longer ones would make each report heavy, and half of them would be untrue."""
FETCHES_NOTHING = "image_urls"
"""Images come to it as base64 only."""


class Ollama:
    """A Backend over ``/api/*``."""

    kind = "ollama"

    def __init__(self, url: str, http: httpx.AsyncClient | None = None, *, connect_s: float = 5.0) -> None:
        self.url = url.rstrip("/")
        self._http = http or wire.client(self.url, connect_s=connect_s)
        self._shown: dict[str, dict[str, Any]] = {}  # by name and digest: /api/show costs a file read each
        self._thinkless: set[str] = set()
        self._families: dict[str, str | None] = {}

    async def identify(self) -> Identity:
        body = await wire.ask(self._http, "/api/version")
        return Identity(kind=self.kind, version=wire.words(body.get("version")), backend_id=wire.backend_id(self.url))

    async def inventory(self) -> list[BackendModel]:
        tags = await wire.ask(self._http, "/api/tags")
        loaded = await self._loaded()
        by_digest: dict[str, list[dict[str, Any]]] = {}
        for model in tags.get("models") or []:
            if not model.get("remote_host"):
                by_digest.setdefault(str(model.get("digest")), []).append(model)
        return [await self._describe(same, loaded) for same in by_digest.values()]

    async def _describe(self, same: list[dict[str, Any]], loaded: dict[str, dict[str, Any]]) -> BackendModel:
        """One model under all of its names; ``x:latest`` also answers to ``x``."""
        names = sorted(str(model["name"]) for model in same)
        first = same[0]
        shown = await self._show(names[0], str(first.get("digest")))
        running = next((loaded[name] for name in names if name in loaded), None)
        capabilities = tuple(shown.get("capabilities") or first.get("capabilities") or ())
        lacks = tuple(name for name in KNOWN if name not in capabilities) if capabilities else ()
        details = first.get("details") or {}
        family = wire.words(details.get("family"))
        self._families |= dict.fromkeys(names, family)
        self._thinkless -= {*names}
        if "thinking" in lacks:
            self._thinkless |= {*names}
        bare = tuple(name.removesuffix(":latest") for name in names if name.endswith(":latest"))
        return BackendModel(
            name=names[0],
            digest=wire.words(first.get("digest")),
            bytes=wire.count(first.get("size")),
            quantisation=wire.words(details.get("quantization_level")),
            context=wire.count(running.get("context_length")) if running else _configured_context(shown),
            context_max=_trained_context(shown),
            capabilities=capabilities,
            lacks=(*lacks, FETCHES_NOTHING),
            resident=running is not None,
            aliases=(*names[1:], *bare),
            family=family,
            families=tuple(word for word in details.get("families") or () if wire.words(word)),
            parameter_size=wire.words(details.get("parameter_size")),
            parameters=_parameters(shown),
            memory=_memory(running) if running is not None else None,
        )

    async def _show(self, name: str, digest: str) -> dict[str, Any]:
        key = f"{name}@{digest}"
        if key not in self._shown:
            try:
                self._shown[key] = await wire.ask(self._http, "/api/show", {"model": name})
            except BackendError as error:
                if error.failure != "rejected":
                    raise
                return {}  # it was removed in between; the next look at the tags says so
        return self._shown[key]

    async def residency(self) -> frozenset[str] | None:
        return frozenset(await self._loaded())

    async def _loaded(self) -> dict[str, dict[str, Any]]:
        body = await wire.ask(self._http, "/api/ps")
        return {str(model["name"]): model for model in body.get("models") or []}

    async def chat(self, request: BackendRequest) -> AsyncGenerator[Chunk | Finish]:
        path, body = chat_body(request)
        thinks = think_at_ollama(request.body.extra, self._families.get(request.model))
        if thinks is not None and request.model not in self._thinkless:
            body["think"] = thinks  # where it cannot: a route's client does not know which model it will be
        calls = 0
        async with wire.stream(self._http, path, body) as lines:
            async for line in lines:
                frame = wire.parse_object(line)
                if "error" in frame:
                    raise wire.from_text(str(frame["error"]))
                chunk = _chunk(frame, calls)
                calls += len(chunk.tool_calls)
                if chunk.is_token:  # also in the last frame: tool calls may come only there
                    yield chunk
                if frame.get("done"):
                    yield msgspec.structs.replace(_finish(frame), limit=body["options"]["num_predict"])
                    return
        raise BackendError("protocol", "the stream ended with HTTP 200 and without done:true")

    async def embed(self, request: BackendRequest) -> Finish:
        inputs = request.body.inputs or ((request.body.prompt,) if request.body.prompt else ())
        async with wire.stream(self._http, "/api/embed", embed_body(request, inputs)) as lines:
            frame = wire.parse_object(b"".join([line async for line in lines]))
        vectors = tuple(tuple(float(x) for x in vector) for vector in frame.get("embeddings") or ())
        if len(vectors) != len(inputs):
            raise BackendError("protocol", f"{len(vectors)} embeddings for {len(inputs)} texts")
        return msgspec.structs.replace(_finish({**frame, "done_reason": "stop"}), vectors=vectors)

    async def pull(self, model: str) -> AsyncGenerator[Pulled]:
        async with wire.stream(self._http, "/api/pull", {"model": model, "stream": True}) as lines:
            async for line in lines:
                frame = wire.parse_object(line)
                if "error" in frame:
                    raise _pull_error(wire.message_of(str(frame["error"])))
                status = str(frame.get("status") or "")
                if status == "success":
                    return
                yield Pulled(
                    status=status,
                    digest=wire.words(frame.get("digest")),
                    total=wire.count(frame.get("total")),
                    completed=wire.count(frame.get("completed")),
                )
        raise BackendError("protocol", "the download ended without a word of success")

    async def aclose(self) -> None:
        await self._http.aclose()


def _chunk(frame: dict[str, Any], calls_before: int) -> Chunk:
    """Each call comes whole; some versions begin to count again in each frame (case 35)."""
    message = frame.get("message") or {}
    calls = tuple(_tool_call(at, call) for at, call in enumerate(message.get("tool_calls") or (), calls_before))
    return Chunk(
        text=message.get("content") or frame.get("response") or "",
        thinking=message.get("thinking") or frame.get("thinking") or "",
        tool_calls=calls,
        logprobs=tuple(frame.get("logprobs") or ()),
    )


def _tool_call(position: int, call: dict[str, Any]) -> dict[str, Any]:
    """Ollama's whole call, with its arguments as an object, in OpenAI's form."""
    function = call.get("function") or {}
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = msgspec.json.encode(arguments or {}).decode()
    named = {"name": function.get("name", ""), "arguments": arguments}
    # Clients know a call by its id for a whole conversation: one by its place would come again with each answer.
    identity = call.get("id") or f"call_{uuid.uuid4().hex[:24]}"
    return {"index": position, "id": identity, "type": "function", "function": named}


def _finish(frame: dict[str, Any]) -> Finish:
    load, prefill, decode, total = (
        wire.micros(frame.get(f"{name}_duration"), NS) for name in ("load", "prompt_eval", "eval", "total")
    )
    queue = None
    if total is not None and decode is not None:
        # the wait for the runner's slot is in no field: it is what the others leave of the total
        queue = max(0, total - (load or 0) - (prefill or 0) - decode)
    tokens = Tokens(
        prompt=wire.count(frame.get("prompt_eval_count")),
        cached=wire.count(frame.get("prompt_eval_cached_count")),
        output=wire.count(frame.get("eval_count")),
    )
    timings = BackendTimings(queue_us=queue, load_us=load, prefill_us=prefill, decode_us=decode, total_us=total)
    reason = wire.words(frame.get("done_reason")) or "stop"
    return Finish(finish_reason=reason, model=wire.words(frame.get("model")), tokens=tokens, timings=timings)


def _pull_error(said: str) -> BackendError:
    """Its registry's answer, or why there was none."""
    if _NOT_THERE.search(said):
        return NoSuchModel(said)
    return BackendError("rejected" if _REFUSED.search(said) else "busy", said)


def _memory(running: dict[str, Any]) -> Memory:
    """``size_vram`` 0 is no unknown: it runs on the CPU."""
    size = wire.count(running.get("size"))
    return Memory(
        bytes=size or None,
        vram_bytes=wire.count(running.get("size_vram")),
        expires_at=wire.moment(running.get("expires_at")),
    )


def _configured_context(shown: dict[str, Any]) -> int | None:
    """The window in the model's own parameters. The trained one is not it: by default Ollama gives less."""
    for line in str(shown.get("parameters") or "").splitlines():
        name, _, value = line.partition(" ")
        if name == "num_ctx" and value.strip().isdigit():
            return int(value)
    return None


def _parameters(shown: dict[str, Any]) -> str | None:
    """By name, since Ollama tells them in another order each time: a report would change without any news."""
    lines = [line for line in str(shown.get("parameters") or "").splitlines() if line.strip()]
    said = "\n".join(sorted(lines, key=lambda line: line.split(maxsplit=1)[0]))
    return said if said and len(said) <= PARAMETERS_CHARS else None


def _trained_context(shown: dict[str, Any]) -> int | None:
    """The longest window that the model was made for: Ollama gives no more, whatever it is asked for."""
    told = shown.get("model_info") or {}
    return wire.count(told.get(f"{told.get('general.architecture')}.context_length"))
