"""A run's pieces on their way to the router: one message for each 20 ms, none lost, none out of order.

The first piece goes at once, since it is the time to first token. While the bus is down pieces are kept, so that the index has
no holes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from schemas.tool_calls import together
from schemas.work import TokenChunk
from services.worker.backends.port import Chunk

GATHER_S = 0.02
"""Faster than anybody reads; at 130 tokens/s it halves the messages."""

Send = Callable[[TokenChunk], Awaitable[bool]]
"""False: not sent, keep it."""


class TokenSender:
    """One run's stream of pieces."""

    def __init__(self, task: str, attempt: int, send: Send) -> None:
        self._task, self._attempt, self._send = task, attempt, send
        self._index = 0
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._logprobs: list[dict[str, Any]] = []
        self._sent_at = float("-inf")
        self._flusher: asyncio.Task[None] | None = None

    async def add(self, chunk: Chunk) -> None:
        if not chunk.is_token:
            return
        self._text.append(chunk.text)
        self._thinking.append(chunk.thinking)
        self._calls += chunk.tool_calls
        self._logprobs += chunk.logprobs
        now = asyncio.get_running_loop().time()
        if self._flusher is None and now - self._sent_at >= GATHER_S:
            await self.flush()
        elif self._flusher is None:
            self._flusher = asyncio.create_task(self._flush_later(self._sent_at + GATHER_S - now))

    async def flush(self) -> None:
        """Send what is gathered."""
        text, thinking, calls = "".join(self._text), "".join(self._thinking), together(self._calls)
        if not (text or thinking or calls):
            return
        logprobs = tuple(self._logprobs)
        chunk = TokenChunk(
            task=self._task, attempt=self._attempt, index=self._index, text=text, thinking=thinking, tool_calls=calls,
            logprobs=logprobs,
        )  # fmt: skip
        self._text.clear()
        self._thinking.clear()
        self._calls.clear()
        self._logprobs.clear()
        self._index += 1
        self._sent_at = asyncio.get_running_loop().time()
        if not await self._send(chunk):
            self._index -= 1
            self._text.insert(0, text)
            self._thinking.insert(0, thinking)
            self._calls[:0] = calls
            self._logprobs[:0] = logprobs

    async def close(self) -> None:
        """The last pieces, at the end of a run; harmless when called twice."""
        if self._flusher is not None:
            self._flusher.cancel()
            await asyncio.wait([self._flusher])
            self._flusher = None
        await self.flush()

    async def _flush_later(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._flusher = None
        await self.flush()
