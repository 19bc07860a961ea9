"""One POST whose reply is read as it comes, over a connection of its own.

Answers "what did the server send, up to now?" for the one path where a millisecond counts: the time to first token. [httpx needs
1.0 ms of CPU for a streamed request and 0.1 ms for each piece; this 0.2 and 0.02.] It knows HTTP/1.1 and nothing of its contents;
everything else that a backend is asked goes through httpx.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

HEAD_BYTES_MAX = 65_536
READ_BYTES = 65_536


class BrokenReply(Exception):
    """The server broke off, or does not speak HTTP."""


class Body:
    """A reply's body without its framing: ``feed`` what was read, take what it means. ``ended`` once it is whole."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.ended = False
        self._is_chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        length = headers.get("content-length")
        self._left = _number(length, 10) if length is not None and not self._is_chunked else None
        self._buffer = bytearray()
        self.ended = self._left == 0

    def feed(self, data: bytes) -> bytes:
        """Raises BrokenReply for framing that is none."""
        if not self._is_chunked:
            if self._left is None:
                return data
            taken = data[: self._left]
            self._left -= len(taken)
            self.ended = self._left == 0
            return taken
        self._buffer += data
        return self._chunks()

    def close(self) -> None:
        """The connection has ended. Raises BrokenReply where more was promised."""
        if (self._is_chunked or self._left is not None) and not self.ended:
            raise BrokenReply("the server closed the connection before the reply was whole")

    def _chunks(self) -> bytes:
        buffer, whole = self._buffer, bytearray()
        while not self.ended and (end := buffer.find(b"\r\n")) >= 0:
            size = _number(bytes(buffer[:end]).partition(b";")[0].decode("latin-1").strip(), 16)
            if size == 0:
                self.ended = True  # trailers would follow; nobody reads them
            elif len(buffer) < end + 2 + size + 2:
                break
            else:
                whole += buffer[end + 2 : end + 2 + size]
                del buffer[: end + 2 + size + 2]
        if len(buffer) > HEAD_BYTES_MAX and buffer.find(b"\r\n", 0, 64) < 0:
            raise BrokenReply("a chunk without a size")
        return bytes(whole)


class Reply(NamedTuple):
    """``pieces`` ends where the body ends; it raises OSError or BrokenReply where the server breaks off."""

    status: int
    pieces: AsyncIterator[bytes]


@asynccontextmanager
async def post(base_url: str, path: str, body: bytes, *, connect_s: float | None) -> AsyncIterator[Reply]:
    """Raises OSError where nobody answers, TimeoutError after ``connect_s``, BrokenReply. Leaving it closes the connection."""
    url = urlsplit(base_url.rstrip("/") + path)
    secure = url.scheme == "https"
    async with asyncio.timeout(connect_s):
        reader, writer = await asyncio.open_connection(
            url.hostname, url.port or (443 if secure else 80), ssl=secure or None, limit=HEAD_BYTES_MAX
        )
    try:
        writer.write(_head(url, len(body)) + body)
        await writer.drain()
        status, headers = await _reply_head(reader)
        yield Reply(status, _pieces(reader, Body(headers)))
    finally:
        writer.transport.abort()


def _head(url: SplitResult, length: int) -> bytes:
    lines = [
        f"POST {url.path} HTTP/1.1",
        f"Host: {url.netloc.rpartition('@')[2]}",
        "Content-Type: application/json",
        "Accept-Encoding: identity",
        "Connection: close",
        f"Content-Length: {length}",
    ]
    if url.username is not None:
        secret = f"{unquote(url.username)}:{unquote(url.password or '')}"
        lines.append(f"Authorization: Basic {base64.b64encode(secret.encode()).decode()}")
    return "\r\n".join((*lines, "", "")).encode("latin-1")


async def _reply_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    while True:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            raise BrokenReply("the server closed the connection without a reply") from None
        except asyncio.LimitOverrunError:
            raise BrokenReply(f"a reply's head of more than {HEAD_BYTES_MAX} bytes") from None
        first, *rest = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        protocol, _, status = first.partition(" ")
        if not protocol.startswith("HTTP/1."):
            raise BrokenReply(f"not HTTP/1.1: {first[:80]!r}")
        number = _number(status[:3], 10)
        if number >= 200:  # before it come "100 Continue" and the like
            return number, {k.strip().lower(): v.strip() for k, _, v in (line.partition(":") for line in rest)}


async def _pieces(reader: asyncio.StreamReader, body: Body) -> AsyncIterator[bytes]:
    while not body.ended:
        data = await reader.read(READ_BYTES)
        if not data:
            body.close()
            return
        if piece := body.feed(data):
            yield piece


def _number(text: str, base: int) -> int:
    try:
        return int(text, base)
    except ValueError:
        raise BrokenReply(f"expected a number, got {text[:40]!r}") from None
