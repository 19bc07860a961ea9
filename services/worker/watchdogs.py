"""How long may a backend be silent, and in which phase?

Four separate limits: connect (the HTTP client's), first byte (queue, load and prefill: generous), stall (between two tokens;
thinking counts, keep-alive comments do not) and total. A slow stream is not a stuck one. ``Watch`` is pure; ``watched`` puts
it around a stream. Neither retries, neither knows why a backend is silent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import msgspec

from schemas.errors import BackendError
from services.runtime.clock import Clock
from services.worker.backends.port import Chunk, Finish


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds. ``connect_s`` is applied by the HTTP client."""

    connect_s: float = 5.0
    first_byte_s: float = 300.0
    stall_s: float = 60.0
    total_s: float = 3600.0


class Watch:
    """One stream's deadlines. Every instant is the caller's monotonic clock."""

    def __init__(self, limits: Limits, now: float) -> None:
        self.limits = limits
        self._started = self._last = now
        self._processed = -1
        self._has_token = False

    def saw(self, chunk: Chunk, now: float) -> None:
        """Something came. Progress of the prompt that does not progress is no sign of life."""
        if chunk.is_token:
            self._has_token, self._last = True, now
        elif chunk.progress is not None and chunk.progress.processed > self._processed:
            self._processed, self._last = chunk.progress.processed, now

    def nearest(self) -> tuple[float, BackendError]:
        """The instant of the next limit, and the failure that it will be."""
        limits = self.limits
        total = self._started + limits.total_s
        quiet = self._last + (limits.stall_s if self._has_token else limits.first_byte_s)
        if total <= quiet:
            return total, BackendError("timeout", f"not finished after {limits.total_s:g} s (limit: total)")
        if self._has_token:
            return quiet, BackendError("stall", f"no token for {limits.stall_s:g} s in mid-answer (limit: stall)")
        return quiet, BackendError("timeout", f"no first token after {limits.first_byte_s:g} s (limit: first byte)")

    def expired(self, now: float) -> BackendError | None:
        """The failure, once its limit has passed."""
        deadline, failure = self.nearest()
        return failure if now >= deadline else None


async def watched(
    stream: AsyncGenerator[Chunk | Finish], limits: Limits, clock: Clock
) -> AsyncGenerator[Chunk | Finish]:
    """The stream, until a limit passes: then it is closed at once and the failure raised."""
    watch = Watch(limits, clock.monotonic())
    async with aclosing(stream):
        while True:
            deadline, failure = watch.nearest()
            try:
                async with asyncio.timeout(max(0.0, deadline - clock.monotonic())):
                    piece = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise failure from None
            if isinstance(piece, Chunk):
                watch.saw(piece, clock.monotonic())
            yield piece
