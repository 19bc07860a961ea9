"""The port of every backend: what can a worker ask of the server beside it?

A backend turns its own wire into these values and its own errors into ``BackendError``; it knows no task, no fleet and no
deadline (``watchdogs`` does), and it never retries. It must never load, keep or evict a model that nobody asked for.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol, runtime_checkable

import msgspec

from schemas.events import Options, Tokens
from schemas.work import Body

MOST_TOKENS = 16_384
"""Where the client gave no limit: Ollama would otherwise go on for ever. Models that think write some thousands before a word."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Which server this is. ``backend_id`` is equal for two workers on one server, so that they share its permits."""

    kind: str
    version: str | None
    backend_id: str


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What a loaded model takes, in all and on the GPU, and until when (Unix seconds); None is not said."""

    bytes: int | None = None
    vram_bytes: int | None = None
    expires_at: float | None = None


class BackendModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model under the backend's own name. ``aliases`` are further names of the very same thing. ``context`` is the window
    that a request really gets, None where the server does not say; ``context_max`` the most that it could get. ``lacks`` are
    the capabilities that it says it has not, or that its kind of server has not. ``memory`` is told of a loaded model,
    ``parameters`` are its own defaults of a request, a line each."""

    name: str
    digest: str | None = None
    bytes: int | None = None
    quantisation: str | None = None
    context: int | None = None
    context_max: int | None = None
    capabilities: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    resident: bool | None = None
    aliases: tuple[str, ...] = ()
    family: str | None = None
    families: tuple[str, ...] = ()
    parameter_size: str | None = None
    parameters: str | None = None
    memory: Memory | None = None


class BackendRequest(msgspec.Struct, frozen=True, kw_only=True):
    """``model`` is the backend's own name. ``context`` is the one window that every request for this model gets here, where the
    owner has set one and the server takes it from requests; no client's wish ever comes this way. ``most_tokens`` is the limit of
    an answer where ``options`` have none and the server knows no end of its own."""

    model: str
    body: Body
    options: Options = Options()
    context: int | None = None
    most_tokens: int = MOST_TOKENS


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """A server that says how far it is with the prompt; the first one tells that the request has left the server's queue."""

    processed: int
    total: int


class Chunk(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the answer as it comes. ``tool_calls`` are OpenAI-style deltas with an ``index``,
    ``logprobs`` OpenAI-style entries, one for each token of the text."""

    text: str = ""
    thinking: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    logprobs: tuple[dict[str, Any], ...] = ()
    progress: Progress | None = None

    @property
    def is_token(self) -> bool:
        """Whether this is progress of the answer itself: text, thinking and tool calls are, prompt progress is not."""
        return bool(self.text or self.thinking or self.tool_calls)


class BackendTimings(msgspec.Struct, frozen=True, kw_only=True):
    """The backend's own figures in microseconds; None where it sends none. ``prefill_us`` is for uncached tokens only."""

    queue_us: int | None = None
    load_us: int | None = None
    prefill_us: int | None = None
    decode_us: int | None = None
    total_us: int | None = None


class Finish(msgspec.Struct, frozen=True, kw_only=True):
    """The only sign of success: the backend itself said that it is done. ``model`` is the one that it says answered, ``limit``
    the most tokens that the request allowed, ``stopped_by`` the stop word of the request that ended it, where that is said."""

    finish_reason: str
    model: str | None = None
    limit: int | None = None
    stopped_by: str | None = None
    tokens: Tokens = Tokens()
    timings: BackendTimings = BackendTimings()
    vectors: tuple[tuple[float, ...], ...] = ()


class Pulled(msgspec.Struct, frozen=True, kw_only=True):
    """A word about a download: ``total`` and ``completed`` are bytes of the file ``digest``."""

    status: str
    digest: str | None = None
    total: int | None = None
    completed: int | None = None


@runtime_checkable
class Puller(Protocol):
    """A server that fetches models by itself."""

    def pull(self, model: str) -> AsyncGenerator[Pulled]:
        """Ends where the model is there, else raises BackendError; closing the iterator ends the download."""
        ...


class Backend(Protocol):
    """One server. All methods raise BackendError, classified; ``url`` is for people."""

    kind: str
    url: str

    async def identify(self) -> Identity: ...

    async def inventory(self) -> list[BackendModel]:
        """Everything that it can serve from its own machine: stubs of somebody's cloud are not in it."""
        ...

    async def residency(self) -> frozenset[str] | None:
        """The backend's names of the models in memory; None where it does not say."""
        ...

    def chat(self, request: BackendRequest) -> AsyncGenerator[Chunk | Finish]:
        """Always streams. Ends with exactly one Finish or raises; closing the iterator closes the connection at once."""
        ...

    async def embed(self, request: BackendRequest) -> Finish: ...

    async def aclose(self) -> None: ...
