"""How long is a sender waited for? A request's head within seconds and 64 KiB, its body at some pace; who is slower gets a 408.

uvicorn waits for ever, and a thousand connections that never finish a request are a thousand that stay. It reads no body and
touches nothing that runs: a stream may be silent for as long as its task takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from services.router.http.delimiting import until_closed
from services.router.http.problems import Problem, native_form, respond

HEAD_S = 30.0
"""The slowest link sends a head in a second; what takes longer is no client."""
HEAD_BYTES_MAX = 64 * 1024
"""Four times what the usual servers take; a session's cookies and a long address fit."""
REASONS = {408: "Request Timeout", 431: "Request Header Fields Too Large"}

SLOW_HEAD = Problem(
    status=408, code="too_slow", message=f"no whole request came within {HEAD_S:g} s; send its head in one piece"
)
LARGE_HEAD = Problem(
    status=431,
    code="too_large",
    message=f"the request's head has more than {HEAD_BYTES_MAX} bytes; texts belong into the body",
)


def head_bytes(scope: Mapping[str, Any]) -> int:
    """As it was sent, nearly: spaces may differ."""
    line = len(scope["method"]) + len(scope["raw_path"] or b"") + len(scope["query_string"])
    return line + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


class Patient(HttpToolsProtocol):
    """One connection. The timer runs from its opening, and from the first byte of each further request, to the head's end."""

    head_s = HEAD_S

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._waiting: asyncio.TimerHandle | None = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._come()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._waiting is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES_MAX:
                self._refuse(LARGE_HEAD)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._waiting is None:
            self._wait()

    def on_headers_complete(self) -> None:
        self._come()
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """A head that came in few packets was never waited for."""
        scope = cycle.scope
        if head_bytes(scope) > HEAD_BYTES_MAX:
            app = respond(LARGE_HEAD, form=native_form, headers={"connection": "close"})
        elif scope["http_version"] == "1.0":
            app = until_closed(app, cycle)
        super()._start_asgi_task(cycle, app)

    def _wait(self) -> None:
        self._head_bytes = 0
        self._waiting = self.loop.call_later(self.head_s, self._refuse, SLOW_HEAD)

    def _come(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _refuse(self, problem: Problem) -> None:
        self._come()
        if self.transport.is_closing():
            return
        body = msgspec.json.encode(native_form(problem))
        head = (
            f"HTTP/1.1 {problem.status} {REASONS[problem.status]}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
