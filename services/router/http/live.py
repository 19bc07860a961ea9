"""How is a task followed over one connection? Headers at the right moment, keep-alives in silence, a goodbye that is noticed.

A client that closes its connection ends the follower at once, whatever the task is doing. Who can come back has the router's
grace time; who cannot has nothing more to gain from the task.
Starlette's own StreamingResponse would do for tokens, but its status and headers are fixed before anything is known.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from schemas.errors import HeadraceError
from services.router.http.problems import AGAIN_S, Problem, problem_of
from services.router.port import RouterPort, Update

KEEP_ALIVE = b": keep-alive\n\n"
SSE_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",
}
"""x-accel-buffering: nginx would otherwise collect the tokens."""

STOPPED = Problem(
    status=503,
    code="stopping",
    message="the router stops; the task goes on, ask GET /task/{id} for its answer when the router is back",
    retry_after_s=AGAIN_S,
)


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """``hold_s``: how long headers wait for the start, so that they can name the worker. ``keep_alive_s``: proxies cut a
    silent stream after 60 s (field notes on Open WebUI, section 5)."""

    hold_s: float = 2.0
    keep_alive_s: float = 15.0


class Line:
    """The response on its way out: opened once, then pieces; safe for the follower and the ticker together."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._lock = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._written_at = self._loop.time()
        self.is_open = False

    async def open(self, headers: Mapping[str, str], status: int = 200) -> bool:
        """False where it was open already: the first to open decides the headers."""
        async with self._lock:
            if self.is_open:
                return False
            raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
            await self._send({"type": "http.response.start", "status": status, "headers": raw})
            self.is_open = True
            self._written_at = self._loop.time()
            return True

    async def write(self, data: bytes) -> None:
        self._written_at = self._loop.time()
        async with self._lock:
            await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def close(self) -> None:
        async with self._lock:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def keep_alive(self, every_s: float, still_here: Callable[[], bytes] = lambda: KEEP_ALIVE) -> None:
        """For ever: a comment, or what else stands for it, after each ``every_s`` of silence."""
        while True:
            silent_s = self._loop.time() - self._written_at
            if silent_s >= every_s:
                await self.write(still_here())
            else:
                await asyncio.sleep(every_s - silent_s)


class Lasting(Response, ABC):
    """A response that lasts as long as something happens. Subclasses follow it, and say how failures look."""

    def __init__(self, router: RouterPort, timing: Timing) -> None:
        super().__init__()
        self.router = router
        self.timing = timing

    @abstractmethod
    async def follow(self, line: Line) -> None:
        """Write what happens until the end. Raises HeadraceError where the router fails."""

    async def begin(self, line: Line) -> None:
        """Send the head, unless it is sent: called ``hold_s`` after the request, and by subclasses that have something sooner."""

    @abstractmethod
    async def on_failure(self, line: Line, problem: Problem) -> None:
        """The router failed, not what is followed: end the response with ``problem``, whatever was sent before."""

    async def on_gone(self) -> None:
        """The client is gone before the end. By itself that costs it nothing: the router's grace time does the rest."""

    def still_here(self) -> bytes:
        """What is written in silence, so that nobody in between cuts the line."""
        return KEEP_ALIVE

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        line = Line(send)
        ticker = asyncio.ensure_future(self._tick(line))
        try:
            if not await until_gone(receive, self._follow(line)):
                await self.on_gone()
        except asyncio.CancelledError:
            await self.on_failure(
                line, STOPPED
            )  # the server's patience is over; the client should know that ours is not
            raise
        finally:
            await _stop(ticker)

    async def _follow(self, line: Line) -> None:
        try:
            await self.follow(line)
        except HeadraceError as error:
            await self.on_failure(line, problem_of(error))

    async def _tick(self, line: Line) -> None:
        await asyncio.sleep(self.timing.hold_s)
        await self.begin(line)
        if line.is_open:
            await line.keep_alive(self.timing.keep_alive_s, self.still_here)


class Live(Lasting):
    """A response that lasts as long as its task. Subclasses say how updates look."""

    def __init__(self, router: RouterPort, task: str, timing: Timing) -> None:
        super().__init__(router, timing)
        self.task = task

    @abstractmethod
    async def on_update(self, line: Line, update: Update) -> bool:
        """Write what the update means; True ends the response."""

    async def follow(self, line: Line) -> None:
        async with self.router.follow(self.task) as updates:
            async for update in updates:
                if await self.on_update(line, update):
                    return
        await self.on_failure(line, STOPPED)


async def until_gone(receive: Receive, work: Coroutine[Any, Any, None]) -> bool:
    """Run ``work`` until it ends (True) or the client is gone (False; ``work`` was cancelled). Errors of ``work`` are raised.

    ``work`` gets to its first wait in any case: a task must have had its follower before it can be abandoned.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await _stop(leaving)
        ended = working.done()
        await _stop(working)
    if ended:
        working.result()
    return ended


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _stop(task: asyncio.Task[Any]) -> None:
    """Cancel and wait; an error of a task that was stopped is nobody's any more."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
