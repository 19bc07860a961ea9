"""Where does a reply end for a client of HTTP/1.0? It knows no chunks: what has no length ends with the connection.

uvicorn would send it chunks, whose numbers it would take for text. Touches nothing of other versions.
"""

from __future__ import annotations

from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


def until_closed(app: Any, cycle: RequestResponseCycle) -> ASGIApp:
    """``app`` for one request. uvicorn closes the connection behind each reply of HTTP/1.0 by itself."""

    async def delimited(scope: Scope, receive: Receive, send: Send) -> None:
        has_length = False

        async def sent(message: Message) -> None:
            nonlocal has_length
            if message["type"] == "http.response.start":
                has_length = any(name.lower() == b"content-length" for name, _ in message.get("headers", ()))
                if not has_length:
                    cycle.chunked_encoding = False
            elif not has_length:
                cycle.expected_content_length = len(message.get("body", b""))  # each piece is as long as it is
            await send(message)

        await app(scope, receive, sent)

    return delimited
