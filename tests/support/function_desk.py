"""The function of Open WebUI at a desk of its own: a real router and worker over a paced backend, and the line to them.

Answers "what would Open WebUI show?". The line can be cut, held back, answered by something else, or led through a prefix.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from services.router.http.access import Access
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.runtime.bus import Bus
from support.functions import pipe_module
from support.paced_backend import MODEL, PacedBackend
from support.routers import dispatching, running_router, whole_log, with_workers
from support.worker_bench import running_worker

Json = dict[str, Any]


class Line:
    """What lies between the function and the router: ``cut`` ends each stream after so many pieces, ``refuse`` has none,
    ``away`` answers everything with a status and a body. ``hang_up`` breaks the streams that are open."""

    def __init__(self, app: FastAPI) -> None:
        self._app, self.state = app, app.state
        self.cut: int | None = None
        self.refuse = False
        self.away: tuple[int, bytes] | None = None
        self.streams = 0
        self._open: set[asyncio.Task[None]] = set()

    def hang_up(self) -> None:
        for stream in self._open:
            stream.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.away is not None:
            status, body = self.away
            await send({"type": "http.response.start", "status": status, "headers": []})
            await send({"type": "http.response.body", "body": body})
            return
        if not scope["path"].endswith("/stream"):
            await self._app(scope, receive, send)
            return
        self.streams += 1
        if self.refuse:
            await send({"type": "http.response.start", "status": 502, "headers": []})
            await send({"type": "http.response.body", "body": b"<html>no stream through here"})
            return
        left, ended = self.cut, False

        async def passed(message: Message) -> None:
            nonlocal left, ended
            if left is not None and message["type"] == "http.response.body":
                left -= 1
                if left < 0:
                    raise ConnectionResetError("cut")
            ended = message["type"] == "http.response.body" and not message.get("more_body")
            await send(message)

        stream = asyncio.ensure_future(self._app(scope, receive, passed))
        self._open.add(stream)
        try:
            await asyncio.wait([stream])
            if not stream.cancelled():
                stream.result()
        except ConnectionResetError:
            pass
        finally:
            stream.cancel()
            self._open.discard(stream)
        if not ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class Desk:
    """One function with its valves, and what Open WebUI would show: ``statuses`` as (words, done)."""

    def __init__(self, bus: Bus, backend: PacedBackend, line: Line, url: str) -> None:
        self.bus, self.backend, self.line, self.url = bus, backend, line, url
        self.function = pipe_module.Pipe()
        self.statuses: list[tuple[str, bool]] = []
        self.valves()

    def valves(self, **changed: Any) -> None:
        self.function.valves = self.function.Valves(ROUTER_URL=self.url, POLL_INTERVAL=0.05, **changed)

    async def ask(self, *messages: str | Json, stream: bool = True, chat: str | None = "chat-1", **more: Any) -> Any:
        roles = ("user", "assistant")
        body = {
            "model": "headrace", "stream": stream, **more.pop("body", {}),
            "messages": [{"role": roles[n % 2], "content": m} if isinstance(m, str) else m for n, m in enumerate(messages)],
        }  # fmt: skip
        ids = {"__chat_id__": chat, "__message_id__": chat and "message-1", "__user__": {"id": "user-1"}}
        return await self.function.pipe(body, __event_emitter__=self._emit, **ids | more)

    async def answer(self, *messages: str | Json, **more: Any) -> list[Json]:
        return [chunk async for chunk in await self.ask(*messages, **more)]

    async def log(self, kind: type[Any]) -> list[Any]:
        return [event for event in await whole_log(self.bus) if isinstance(event, kind)]

    async def _emit(self, event: Json) -> None:
        assert event["type"] == "status"
        self.statuses.append((event["data"]["description"], event["data"]["done"]))


Make = Callable[..., Any]


@asynccontextmanager
async def function_desk(
    nats_url: str, bus: Bus, *, slots: int = 2, access: Access | None = None, **options: Any
) -> AsyncIterator[Desk]:
    async with AsyncExitStack() as running:
        backend = await running.enter_async_context(PacedBackend())
        router = await running.enter_async_context(running_router(nats_url, **options))
        await running.enter_async_context(running_worker(nats_url, backend.url, slots=slots))
        await dispatching(router)
        await with_workers(router, 1, MODEL)
        line = Line(create_app(router, access=access))
        url = await running.enter_async_context(serving(line, "127.0.0.1", 0, drain_s=1))  # type: ignore[arg-type]
        yield Desk(bus, backend, line, url)


def text(chunks: list[Json], name: str = "content") -> str:
    return "".join(c["choices"][0]["delta"].get(name, "") for c in chunks if c.get("choices"))


async def collect(chunks: AsyncIterator[Json]) -> list[Json]:
    return [chunk async for chunk in chunks]
