"""One attempt against the backend: from the request to the finish, watched, with every piece handed on.

Answers "what came back, and when?". It knows no event and no protocol; a cancelled run closes the upstream stream at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from schemas.errors import BackendError
from schemas.events import Kind, Phase
from services.runtime.clock import Clock
from services.worker.answer import Assembled, Ran
from services.worker.backends.port import Backend, BackendRequest, Chunk, Finish
from services.worker.timings import Seen
from services.worker.watchdogs import Limits, watched

OnPiece = Callable[[Chunk], Awaitable[None]]
OnPhase = Callable[[Phase, int], None]


async def run_once(
    backend: Backend,
    request: BackendRequest,
    kind: Kind,
    limits: Limits,
    clock: Clock,
    *,
    was_resident: bool | None,
    on_piece: OnPiece,
    on_phase: OnPhase,
) -> Ran:
    """Raises BackendError, classified; never retries."""
    seen = Seen(sent=clock.monotonic())
    assembled = Assembled()
    finish: Finish | None = None
    on_phase("loading" if was_resident is False else "prefill", 0)
    if kind == "embedding":
        finish = await _embed(backend, request, limits)
    else:
        async with aclosing(watched(backend.chat(request), limits, clock)) as stream:
            async for piece in stream:
                now = clock.monotonic()
                if isinstance(piece, Finish):
                    finish = piece
                    continue
                if piece.progress is not None and seen.taken is None:
                    seen.taken = now
                    on_phase("prefill", 0)
                if piece.is_token:
                    seen.first_token = seen.first_token if seen.first_token is not None else now
                    seen.last_token = now
                    assembled.add(piece)
                    on_phase("decode", assembled.pieces)
                    await on_piece(piece)
    seen.ended = clock.monotonic()
    if finish is None:
        raise BackendError("protocol", "the stream ended without a word of the server")
    return Ran(assembled=assembled, finish=finish, seen=seen)


async def _embed(backend: Backend, request: BackendRequest, limits: Limits) -> Finish:
    try:
        async with asyncio.timeout(min(limits.first_byte_s, limits.total_s)):
            return await backend.embed(request)
    except TimeoutError:
        raise BackendError("timeout", "no embeddings in time (limit: first byte)") from None
