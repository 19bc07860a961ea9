"""Readers for nats-py that hand over messages at once instead of by one task wake-up each.

Answers "what arrived on this subscription?". nats-py parses with regular expressions, decodes each subject and passes each
message through a queue to a callback: 5 to 6 µs, and as much again for headers. Here a message costs about 1.5 µs. Everything
else of nats-py stays: authentication, reconnecting, pings. ``BatchParser`` is for a connection that does nothing but feed,
``DirectParser`` for one that has subscriptions of nats-py's own as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import ProtocolError

from services.runtime.logs import logger

log = logger("wire")

MAX_LINE_BYTES = 64 * 1024
"""A longer control line is not NATS; the server's own limit is 4 KiB, plus INFO."""


_INLINE = {"Status": 1, "Description": 2}


class Arrived(NamedTuple):
    """A message as it came: ``reply`` names its place in the stream, ``header`` is raw or None, ``sid`` its subscription."""

    subject: bytes
    reply: bytes
    data: bytes
    header: bytes | None
    sid: bytes

    @property
    def headers(self) -> RawHeaders | None:
        return None if self.header is None else RawHeaders(self.header)

    @property
    def is_nobody(self) -> bool:
        """The server's word that nobody listens there, or that it is still recovering what does."""
        return self.header is not None and self.header.startswith(b"NATS/1.0 503")

    def message(self, client: Client) -> Msg:
        """As nats-py hands it over."""
        headers: Any = self.headers
        return Msg(client, self.subject.decode(), self.reply.decode(), self.data, headers)


class BatchParser:
    """Takes the place of nats-py's parser (``client._ps``): the same two methods, and all messages of a read at once."""

    def __init__(self, client: Client, on_batch: Callable[[list[Arrived]], None]) -> None:
        self._client = client
        self._on_batch = on_batch
        self.reset()

    def reset(self) -> None:
        self._parts: list[bytes] = []
        self._lacking = 0
        """Bytes that the message which has begun lacks: until they are there nothing is looked at again."""

    async def parse(self, data: bytes = b"") -> None:
        """Raises nats-py's ProtocolError for what is not NATS; nats-py then reconnects."""
        self._parts.append(data)
        self._lacking -= len(data)
        if self._lacking > 0:
            return
        buffer = b"".join(self._parts)
        position = lacking = 0
        found: list[Arrived] = []
        while (end := buffer.find(b"\r\n", position)) >= 0:
            if buffer.startswith(b"MSG ", position):
                words = buffer[position + 4 : end].split(b" ")
                start, stop = end + 2, end + 2 + int(words[-1])
                if (lacking := stop + 2 - len(buffer)) > 0:
                    break
                found.append(Arrived(words[0], words[2] if len(words) > 3 else b"", buffer[start:stop], None, words[1]))
            elif buffer.startswith(b"HMSG ", position):
                words = buffer[position + 5 : end].split(b" ")
                start, stop = end + 2, end + 2 + int(words[-1])
                if (lacking := stop + 2 - len(buffer)) > 0:
                    break
                body = start + int(words[-2])
                reply = words[2] if len(words) > 4 else b""
                found.append(Arrived(words[0], reply, buffer[body:stop], buffer[start:body], words[1]))
            else:
                stop = end
                await self._control(buffer[position:end])
            position = stop + 2
        rest = buffer[position:]
        self._parts, self._lacking = [rest] if rest else [], max(lacking, 0)
        if found:
            self._on_batch(found)
        elif len(rest) > MAX_LINE_BYTES and b"\r\n" not in rest[:MAX_LINE_BYTES]:
            raise ProtocolError

    async def _control(self, line: bytes) -> None:
        if line == b"PING":
            await self._client._process_ping()
        elif line == b"PONG":
            await self._client._process_pong()
        elif line.startswith(b"-ERR"):
            await self._client._process_err(line[4:].strip().decode().lower())
        elif line.startswith(b"INFO "):
            await self._client._process_info(json.loads(line[5:]))
        elif line != b"+OK":
            raise ProtocolError


class DirectParser(BatchParser):
    """``direct``: by subscription, who is called with its messages as they are read, in their order. It must not wait."""

    def __init__(self, client: Client, direct: Mapping[bytes, Callable[[Arrived], object]]) -> None:
        super().__init__(client, self._deliver)
        self._direct = direct
        self._others: list[Arrived] = []

    async def parse(self, data: bytes = b"") -> None:
        await super().parse(data)
        others, self._others = self._others, []
        for one in others:
            await self._client._process_msg(int(one.sid), one.subject, one.reply, one.data, one.header)  # type: ignore[arg-type]

    def _deliver(self, arrived: list[Arrived]) -> None:
        for one in arrived:
            heard = self._direct.get(one.sid)
            if heard is None:
                self._others.append(one)
                continue
            try:
                heard(one)
            except Exception:  # the next message is another's
                log.exception("a listener failed", action="listener_failed", subject=one.subject.decode())


class RawHeaders(Mapping[str, str]):
    """Headers that are only looked into when somebody asks: a feed's reader mostly does not. Names are case-sensitive.
    The server's own ``Status`` and ``Description``, which stand in the first line, are found by those names too."""

    __slots__ = ("_raw",)

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def __getitem__(self, name: str) -> str:
        start = self._raw.find(b"\r\n%s:" % name.encode())
        if start < 0:
            words = self._raw.partition(b"\r\n")[0].split(maxsplit=2)
            at = _INLINE.get(name, len(words))
            if at >= len(words):
                raise KeyError(name)
            return words[at].decode(errors="replace")
        start += len(name.encode()) + 3
        return self._raw[start : self._raw.index(b"\r\n", start)].decode(errors="replace").strip()

    def __contains__(self, name: object) -> bool:
        """Without Mapping's exception: every fact of the log is asked whether it was imported."""
        return isinstance(name, str) and b"\r\n%s:" % name.encode() in self._raw

    def __iter__(self) -> Iterator[str]:
        lines = self._raw.split(b"\r\n")[1:]
        return (line.partition(b":")[0].decode(errors="replace") for line in lines if b":" in line)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def status(self) -> str | None:
        """``NATS/1.0 408 Request Timeout`` -> ``408``; None for ordinary headers."""
        words = self._raw.partition(b"\r\n")[0].split(maxsplit=2)
        return words[1].decode() if len(words) > 1 else None
