"""One client's line to the server: messages out and in without nats-py's queues and tasks between.

Answers "send these bytes" and "who hears what comes on that subscription?". What goes out stands in nats-py's own buffer, in
order with all that it sends itself, and its flusher sends it; what comes in is handed over as it is read. Connecting,
reconnecting, pings and whatever else nats-py subscribes to stay nats-py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from nats.aio.client import Client

from services.runtime.wire import Arrived, DirectParser

SMALL = 64 * 1024
"""Larger messages go through nats-py, which waits where too much is unsent."""

Hear = Callable[[Arrived], object]


class Line:
    """Made before the client connects. What is called must not wait; its errors are logged."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._direct: dict[bytes, Hear] = {}
        client._ps = DirectParser(client, self._direct)  # type: ignore[assignment]

    def direct(self, sid: int, heard: Hear) -> None:
        """From now on ``heard`` has the messages of a subscription that nats-py made, and makes again after a reconnection."""
        self._direct[b"%d" % sid] = heard

    def hear(self, subject: str, heard: Hear, limit: int) -> int:
        """Subscribe for at most ``limit`` messages, counted by the server, until the connection is lost; returns what ``unhear``
        takes. nats-py does not know of it, so it cannot subscribe again by itself."""
        self._client._sid += 1
        sid = self._client._sid
        self.direct(sid, heard)
        self._write(b"SUB %s %d\r\nUNSUB %d %d\r\n" % (subject.encode(), sid, sid, limit))
        return sid

    def hush(self, sid: int) -> None:
        """The server shall send nothing more; what it has sent already is still heard."""
        if self._client.is_connected:
            self._write(b"UNSUB %d\r\n" % sid)

    def unhear(self, sid: int) -> None:
        """What comes from here on is dropped. Harmless at any time."""
        self._direct.pop(b"%d" % sid, None)

    async def say(self, subject: str, data: bytes, reply: str = "", headers: Mapping[str, str] | None = None) -> None:
        """As nats-py's ``publish``, which it leaves large and odd messages to: the same bytes, without its nine calls each."""
        if not self.try_say(subject, data, reply, headers):
            await self._client.publish(subject, data, reply=reply, headers=dict(headers) if headers else None)

    def try_say(self, subject: str, data: bytes, reply: str = "", headers: Mapping[str, str] | None = None) -> bool:
        """False, and nothing is said, where that is nats-py's."""
        nc = self._client
        words = (subject, reply, *(headers or {}).values())
        is_plain = subject and all(map(str.isprintable, words)) and " " not in subject + reply
        if len(data) > min(SMALL, nc.max_payload) or not is_plain:
            return False
        if headers:
            head = b"NATS/1.0\r\n%s\r\n" % "".join([f"{name}: {value}\r\n" for name, value in headers.items()]).encode()
            start = f"HPUB {subject} {reply} {len(head)} {len(head) + len(data)}\r\n".encode()
            self._write(b"%s%s%s\r\n" % (start, head, data))
        else:
            self._write(b"%s%s\r\n" % (f"PUB {subject} {reply} {len(data)}\r\n".encode(), data))
        return True

    def _write(self, command: bytes) -> None:
        """Behind all that was written before; the flusher sends it within a turn of the loop."""
        nc = self._client
        nc._pending.append(command)
        nc._pending_data_size += len(command)
        if nc._flush_queue is not None and nc._flush_queue.empty():
            nc._flush_queue.put_nowait(asyncio.get_running_loop().create_future())
