"""A server of one's own on a free port, for stand-ins that speak HTTP by hand.

Answers "who listens, and what is left of it afterwards?": nothing, whatever its clients and its tasks were doing.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Self

LINE_BYTES_MAX = 2**26
"""A request's head fits, whatever a test puts into it."""


class Listener(ABC):
    """``async with`` it, or ``start`` and ``stop``. Each connection is a task of its own."""

    def __init__(self) -> None:
        self.url = ""
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=LINE_BYTES_MAX)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @abstractmethod
    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
