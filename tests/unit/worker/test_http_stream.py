"""A reply's body, however the network cuts it, and what is no reply."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from services.worker.backends.http_stream import Body, BrokenReply, post

CHUNKED = {"transfer-encoding": "chunked"}
WIRE = b"4\r\nhead\r\nB;x=1\r\n\r\nrace \xe2\x80\xa8!\r\n0\r\n\r\n"
TEXT = b"head\r\nrace \xe2\x80\xa8!"


def read(body: Body, data: bytes, cuts: list[int]) -> bytes:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    return b"".join(body.feed(data[a:b]) for a, b in pairwise(edges))


@given(st.lists(st.integers(0, len(WIRE))))
def test_chunks_are_joined_wherever_the_network_cuts(cuts: list[int]) -> None:
    body = Body(CHUNKED)
    assert read(body, WIRE, cuts) == TEXT
    assert body.ended


def test_a_body_of_a_known_length_ends_there() -> None:
    body = Body({"content-length": "5"})
    assert read(body, b"abcdefgh", [2]) == b"abcde"
    assert body.ended
    assert Body({"content-length": "0"}).ended


def test_without_a_length_the_end_of_the_connection_is_the_end() -> None:
    body = Body({})
    assert body.feed(b"abc") == b"abc"
    body.close()


@pytest.mark.parametrize(("headers", "data"), [(CHUNKED, WIRE[:-5]), ({"content-length": "5"}, b"abc")])
def test_a_body_that_ends_early_is_broken(headers: dict[str, str], data: bytes) -> None:
    body = Body(headers)
    body.feed(data)
    with pytest.raises(BrokenReply, match="before the reply was whole"):
        body.close()


def test_a_chunk_without_a_size_is_broken() -> None:
    with pytest.raises(BrokenReply, match="expected a number, got 'data: x'"):
        Body(CHUNKED).feed(b"data: x\r\n")


async def answer(words: bytes) -> tuple[bytes, int, bytes]:
    """(request as the server saw it, status, body) where the server says exactly these words."""
    seen = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.extend(await reader.readuntil(b"}"))
        writer.write(words)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with post(f"http://me:se%20cret@127.0.0.1:{port}/v", "/chat", b"{}", connect_s=5.0) as reply:
            return bytes(seen), reply.status, b"".join([piece async for piece in reply.pieces])


async def test_a_request_names_its_path_its_host_and_who_asks() -> None:
    request, status, body = await answer(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno")
    assert (status, body) == (404, b"no")
    assert request.startswith(b"POST /v/chat HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nAuthorization: Basic bWU6c2UgY3JldA==\r\n" in request


@pytest.mark.parametrize("words", [b"", b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 OK\r\n\r\n"])
async def test_what_is_no_reply_is_broken(words: bytes) -> None:
    with pytest.raises(BrokenReply):
        await answer(words)
