from __future__ import annotations

import asyncio
import socket

import pytest

from schemas.errors import SettingsError
from services.router.http.serving import listen
from support.eventually import PATIENCE_S


def test_a_port_that_is_taken_is_named() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SettingsError, match=f"router.port {port}: cannot listen"):
            listen("127.0.0.1", port)


async def test_tokens_are_sent_without_waiting_for_an_acknowledgement() -> None:
    """Nagle's algorithm would hold back each second small write for 40 ms."""
    delays: asyncio.Queue[int] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted = writer.get_extra_info("socket")
        delays.put_nowait(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(accept, sock=listen("127.0.0.1", 0))
    async with server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert await asyncio.wait_for(delays.get(), PATIENCE_S) != 0
        writer.close()
        await writer.wait_closed()
