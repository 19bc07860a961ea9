"""An HTTP client that costs nearly nothing, so that a bench measures the server: a socket and the parser that uvicorn uses.

Answers "when came the first byte of the answer, and when the last?". Connections are kept and used again where the server keeps
them. It knows no redirects, no compression and no retries: whatever goes wrong is the answer.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httptools


class Reply(NamedTuple):
    """Seconds are since the request was written. ``status`` 0: the connection broke."""

    status: int
    body: bytes
    first_s: float
    total_s: float
    headers: dict[str, str]

    def json(self) -> Any:
        return json.loads(self.body)


class Lines:
    """``async with Lines(url) as lines: await lines.post("/v1/embeddings", {...})``; a connection for each at once."""

    def __init__(self, url: str) -> None:
        self._host, self._port = str(urlsplit(url).hostname), int(urlsplit(url).port or 80)
        self._idle: list[_Line] = []
        self._all: set[_Line] = set()

    async def __aenter__(self) -> Lines:
        return self

    async def __aexit__(self, *_: object) -> None:
        for line in self._all:
            line.transport.abort()

    async def post(self, path: str, body: dict[str, Any], **headers: str) -> Reply:
        data = json.dumps(body).encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n{more}"
        return await self._ask(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)

    async def get(self, path: str) -> Reply:
        return await self._ask(f"GET {path} HTTP/1.1\r\nHost: {self._host}\r\n\r\n".encode())

    async def _ask(self, request: bytes) -> Reply:
        line = self._idle.pop() if self._idle else await self._open()
        reply = await line.ask(request)
        if line.kept:
            self._idle.append(line)
        else:
            line.transport.abort()
            self._all.discard(line)
        return reply

    async def _open(self) -> _Line:
        loop = asyncio.get_running_loop()
        _, line = await loop.create_connection(lambda: _Line(loop), self._host, self._port)
        self._all.add(line)
        return line


class _Line(asyncio.Protocol):
    """One connection; one request at a time."""

    transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._answered: asyncio.Future[Reply] | None = None
        self.kept = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    async def ask(self, request: bytes) -> Reply:
        self._parser = httptools.HttpResponseParser(self)
        self._body, self._headers, self._first = bytearray(), dict[str, str](), 0.0
        self._answered = self._loop.create_future()
        self._began = self._loop.time()
        self.transport.write(request)
        return await self._answered

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def connection_lost(self, _error: Exception | None) -> None:
        self.kept = False
        if self._answered is not None and not self._answered.done():
            # A server that closes at the end says its length by that; one that said nothing at all has broken off.
            self._answer(self._parser.get_status_code() if self._headers else 0)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._first = self._first or self._loop.time()
        self._body += body

    def on_message_complete(self) -> None:
        self.kept = self.kept and bool(self._parser.should_keep_alive())
        self._answer(self._parser.get_status_code())

    def _answer(self, status: int) -> None:
        now = self._loop.time()
        if self._answered is not None and not self._answered.done():
            first = (self._first or now) - self._began
            self._answered.set_result(Reply(status, bytes(self._body), first, now - self._began, self._headers))
