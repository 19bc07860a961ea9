"""What does a request in Ollama's form ask of the router? A decoded body to a NewTask; what Ollama knows and we do not goes on.

Options that decide how a model is loaded (``num_ctx`` before all) never go on: each other value would make Ollama load the model
anew, and clients with different ones would destroy each other's speed (case 27). ``num_ctx`` is a wish of the request instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from schemas.events import Kind, Options, Wants
from schemas.load_options import LOAD_OPTIONS
from schemas.work import Body
from services.router.fleet import Fleet
from services.router.http.asking import Seed, Share, Temperature
from services.router.http.identity import client_of, message_of, session_of, task_kind_of
from services.router.http.ollama_messages import openai_messages, user_message
from services.router.http.reading import BadRequest, check_extra, typed
from services.router.nearest import is_called
from services.router.policy.routes import AUTO
from services.router.port import NewTask

SHARED = frozenset("stop top_k min_p typical_p repeat_last_n repeat_penalty presence_penalty frequency_penalty".split())
"""What other servers call by the same name, and read beside the messages."""
LATEST = ":latest"
KeepAlive = float | str | None
Think = bool | str | None


class OllamaOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The ``options`` that the router reads."""

    temperature: Temperature | None = None
    top_p: Share | None = None
    seed: Seed | None = None
    num_predict: int | None = None
    num_ctx: int | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What all requests to a model have. ``keep_alive`` is read and left to the owner of the machine."""

    model: Annotated[str, msgspec.Meta(max_length=512)] = ""
    keep_alive: KeepAlive = None
    options: dict[str, Any] | None = None

    @property
    def wants_unload(self) -> bool:
        """Of an empty request: whether it asks for the model to leave the memory, not to come into it."""
        text = self.keep_alive
        return text is not None and str(text).strip("hmsu ") in ("0", "0.0")


class Generated(Asked, frozen=True, kw_only=True):
    """What chat and generate share. ``stream`` left out is true."""

    stream: bool | None = None
    format: Any = None
    think: Think = None
    truncate: bool | None = None
    shift: bool | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None

    @property
    def streams(self) -> bool:
        return self.stream is not False


class ChatAsked(Generated, frozen=True, kw_only=True):
    messages: list[Any] | None = None
    tools: list[Any] | None = None


class GenerateAsked(Generated, frozen=True, kw_only=True):
    prompt: str | None = None
    suffix: str | None = None
    system: str | None = None
    template: str | None = None
    context: list[int] | None = None
    raw: bool | None = None
    images: list[Any] | None = None


class EmbedAsked(Asked, frozen=True, kw_only=True):
    input: str | list[str] | None = None
    truncate: bool | None = None
    dimensions: int | None = None

    @property
    def inputs(self) -> tuple[str, ...]:
        if isinstance(self.input, str):
            return (self.input,) if self.input else ()
        return tuple(self.input or ())


class EmbeddingsAsked(Asked, frozen=True, kw_only=True):
    """The former path, of one text."""

    prompt: str | None = None


class Asking(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and of whom."""

    headers: Mapping[str, str]
    fleet: Fleet
    virtual: Sequence[str]
    path: str


def chat_task(asked: ChatAsked, by: Asking) -> NewTask:
    """Raises BadRequest naming the field."""
    extra = _extra(asked, by)
    if asked.tools:
        extra["tools"] = asked.tools
    return _task(asked, by, Body(messages=openai_messages(asked.messages or ()), extra=extra))


def generate_task(asked: GenerateAsked, by: Asking) -> NewTask:
    """With the model's own template it is a chat of one message; what only Ollama can do with a bare prompt is a completion."""
    if asked.context:
        raise BadRequest(
            "context: its tokens mean something to one model on one machine only; use /api/chat", "context"
        )
    if asked.raw and (asked.template or asked.system):
        raise BadRequest("raw mode does not support template, system, or context", "raw")
    extra, prompt = _extra(asked, by), asked.prompt or ""
    if not (asked.raw or asked.suffix or asked.template):
        system = ({"role": "system", "content": asked.system},) if asked.system else ()
        return _task(asked, by, Body(messages=(*system, user_message(prompt, asked.images)), extra=extra))
    if asked.images:
        raise BadRequest("images: go with messages only, not with raw, suffix or template; use /api/chat", "images")
    own = {"raw": asked.raw, "suffix": asked.suffix, "template": asked.template, "system": asked.system}
    extra |= {name: value for name, value in own.items() if value}
    return _task(asked, by, Body(prompt=prompt, extra=extra), kind="completion")


def embed_task(asked: EmbedAsked | EmbeddingsAsked, by: Asking) -> NewTask:
    if isinstance(asked, EmbeddingsAsked):
        return _task(asked, by, Body(inputs=(asked.prompt or "",), extra={"truncate": True}), kind="embedding")
    extra: dict[str, Any] = {"truncate": asked.truncate is not False}
    if asked.dimensions is not None and asked.dimensions > 0:
        extra["dimensions"] = asked.dimensions
    return _task(asked, by, Body(inputs=asked.inputs, extra=extra), kind="embedding")


def model_name(model: str, virtual: Sequence[str]) -> str:
    """Clients add ``:latest`` to whatever has no tag, also to the name of a route."""
    bare = model.removesuffix(LATEST)
    return bare if bare in virtual else model


def _task(asked: Asked, by: Asking, body: Body, *, kind: Kind = "chat") -> NewTask:
    options = typed(asked.options or {}, OllamaOptions, prefix="options")
    check_extra(body.extra)
    window = _limit(options.num_ctx)
    name = model_name(asked.model, by.virtual)
    return NewTask(
        client=client_of(by.headers),
        session=session_of(by.headers, by.path),
        message=message_of(by.headers),
        urgency="background" if task_kind_of(by.headers) is not None else "interactive",
        kind=kind,
        body=body,
        wants=Wants(
            model=None if name == AUTO else name,
            context=window,
            context_flexible=window is not None,
        ),
        options=Options(
            max_tokens=_limit(options.num_predict),
            temperature=options.temperature,
            top_p=options.top_p,
            seed=options.seed,
        ),
    )


def _limit(tokens: int | None) -> int | None:
    """Below 1 means none in Ollama."""
    return min(tokens, 2**31 - 1) if tokens is not None and tokens > 0 else None


def _extra(asked: Generated, by: Asking) -> dict[str, Any]:
    """What goes to the backend, in OpenAI's words where it has them."""
    given = {
        key: value for key, value in (asked.options or {}).items() if value is not None and key not in LOAD_OPTIONS
    }
    extra: dict[str, Any] = {key: value for key, value in given.items() if key in SHARED}
    rest = given.keys() - SHARED - set(OllamaOptions.__struct_fields__)
    if rest:
        extra["options"] = {key: given[key] for key in sorted(rest)}
    if asked.format is not None and asked.format != "":
        extra["response_format"] = _response_format(asked.format)
    if asked.think is not None:
        extra["think"] = _think(asked, by)
    if asked.truncate:
        extra["truncate"] = True
    if asked.logprobs:
        extra["logprobs"] = True
        if asked.top_logprobs is not None:
            extra["top_logprobs"] = _in_range(asked.top_logprobs)
    return extra


def _response_format(form: Any) -> dict[str, Any]:
    if form == "json":
        return {"type": "json_object"}
    if isinstance(form, dict):
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": form}}
    raise BadRequest(f'format: invalid format: {form!r}; expected "json" or a valid JSON Schema object', "format")


def _think(asked: Generated, by: Asking) -> Think:
    """Refused in Ollama's words where each holder says that the model cannot."""
    levels = ("low", "medium", "high", "max")
    if isinstance(asked.think, str) and asked.think not in levels:
        raise BadRequest(f"think: {asked.think!r} is none of true, false, {', '.join(levels)}", "think")
    named = [
        info for worker in by.fleet.workers.values() for info in worker.models.values() if is_called(info, asked.model)
    ]
    if asked.think and named and all("thinking" in info.lacks for info in named):
        raise BadRequest(f'"{asked.model}" does not support thinking', "think")
    return asked.think


def _in_range(top: int) -> int:
    if not 0 <= top <= 20:
        raise BadRequest("top_logprobs must be between 0 and 20", "top_logprobs")
    return top
