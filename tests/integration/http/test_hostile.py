"""Senders who mean ill, or whose program is broken: each gets a clear error in its surface's form, and nobody waits for it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from services.router.http import reading
from services.router.http.patience import HEAD_BYTES_MAX, Patient
from support.eventually import PATIENCE_S
from support.proving import passed

PATHS = ("/route", "/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/messages", "/api/chat", "/api/embed")
MEGABYTE = b"x" * 1_000_000
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\n"
GOOD = {"messages": [{"role": "user", "content": "Hi"}]}


def words_of(path: str, reply: httpx.Response) -> str:
    """The error's message, in the form of the path."""
    error: Any = reply.json()["error"]
    return str(error if path.startswith("/api/") else error["message"])


async def wire_of(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    address = urlsplit(url)
    return await asyncio.open_connection(address.hostname, address.port)


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The status, and head and body as a client reads them: what comes after a closed door may be a reset."""
    async with asyncio.timeout(PATIENCE_S):
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head)
        return int(head.split(b" ", 2)[1]), head + await reader.readexactly(int(length[1]) if length else 0)


@pytest.mark.parametrize("path", PATHS)
async def test_40_mb_are_refused_whether_their_length_is_declared_or_not(wire: httpx.AsyncClient, path: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield MEGABYTE

    for body in (MEGABYTE * 40, pieces()):
        reply = await wire.post(path, content=body)
        assert reply.status_code == 413
        assert "the limit is 33554432" in words_of(path, reply)
    assert (await wire.get("/healthz")).status_code == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "\xff\xfe"}',
        b"\xff",
        b'{"messages": [{"role": "user", "content": "\xc3\x28"}]}',
        b'{"a": "\xed\xa0\x80"}',
    ],
)
async def test_what_is_no_utf_8_is_no_json(wire: httpx.AsyncClient, path: str, body: bytes) -> None:
    reply = await wire.post(path, content=body)
    assert reply.status_code == 400
    assert words_of(path, reply)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "body", [b"[" * 1_000_000, b'{"a":' * 1_000_000, b'{"messages":' + b"[" * 10_000 + b"]" * 10_000 + b"}"]
)
async def test_deep_json_is_refused(wire: httpx.AsyncClient, path: str, body: bytes) -> None:
    reply = await wire.post(path, content=body)
    assert reply.status_code == 400
    assert "deep" in words_of(path, reply) or "JSON" in words_of(path, reply)


async def test_a_head_that_comes_byte_by_byte_is_given_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Patient, "head_s", 0.2)
    reader, writer = await wire_of(url)
    answered = asyncio.create_task(answer(reader))
    try:
        for byte in POST * 100:
            if answered.done():
                break
            writer.write(bytes([byte]))
            await asyncio.wait([answered], timeout=0.02)
        status, said = await answered
    finally:
        writer.close()
    assert status == 408
    assert b'"code":"too_slow"' in said


async def test_a_second_request_of_a_kept_connection_has_its_own_time(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Patient, "head_s", 0.3)
    reader, writer = await wire_of(url)
    try:
        for _ in range(2):
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n")
            assert b"200 OK" in await asyncio.wait_for(reader.readuntil(b'{"ok":true}'), PATIENCE_S)
        writer.write(b"GET /healthz HT")
        status, _ = await answer(reader)
    finally:
        writer.close()
    assert status == 408


async def test_a_head_without_end_is_cut_off(url: str) -> None:
    reader, writer = await wire_of(url)
    try:
        writer.write(POST)
        for _ in range(HEAD_BYTES_MAX // 1000 + 2):
            writer.write(b"x-more: " + b"y" * 990 + b"\r\n")
        status, said = await answer(reader)
    finally:
        writer.close()
    assert status == 431
    assert b'"code":"too_large"' in said


@pytest.mark.parametrize(
    "head", [b"x-more: " + b"y" * 70_000 + b"\r\n", b"x-more: y\r\n" * 7_000], ids=["one line", "many"]
)
async def test_a_head_too_large_that_comes_in_one_piece_is_refused_with_its_body(url: str, head: bytes) -> None:
    reader, writer = await wire_of(url)
    try:
        writer.write(POST + head + b"Content-Length: 5\r\n\r\nabcde")
        status, said = await answer(reader)
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b"", "the connection is closed"
    finally:
        writer.close()
    assert status == 431
    assert b'"code":"too_large"' in said


@pytest.mark.parametrize("trickle", [0, 1])
async def test_a_body_that_never_ends_is_given_up(url: str, monkeypatch: pytest.MonkeyPatch, trickle: int) -> None:
    """Whether nothing more comes or now and then a byte."""
    monkeypatch.setattr(reading, "PATIENCE_S", 0.2)
    reader, writer = await wire_of(url)
    writer.write(POST + b"Content-Length: 1000\r\n\r\n{")
    answered = asyncio.create_task(answer(reader))
    try:
        while not answered.done():
            writer.write(b" " * trickle)
            await asyncio.wait([answered], timeout=0.02)
        status, said = await answered
    finally:
        writer.close()
    assert status == 408
    assert b"bytes of the body came" in said
    assert b"connection: close" in said


async def test_a_large_body_at_a_fair_pace_is_waited_for(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes longer than is waited for a body that stands still, and never falls behind the slowest pace."""
    monkeypatch.setattr(reading, "PATIENCE_S", 1.0)
    body = b'{"messages": [{"role": "user", "content": "Hi"}]' + b" " * 40_000 + b"}"
    reader, writer = await wire_of(url)
    try:
        writer.write(POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
        for at in range(0, len(body), 4_000):
            writer.write(body[at : at + 4_000])
            await writer.drain()
            await passed(0.15)
        status, _ = await answer(reader)
    finally:
        writer.close()
    assert status == 200


async def test_idle_connections_keep_nobody_from_being_answered(url: str, wire: httpx.AsyncClient) -> None:
    async with AsyncExitStack() as opened:
        for _ in range(1_000):
            _, writer = await wire_of(url)
            opened.callback(writer.close)
        reply = await wire.post("/v1/chat/completions", json=GOOD)
    assert reply.status_code == 200


async def test_what_is_no_http_is_refused(url: str) -> None:
    reader, writer = await wire_of(url)
    try:
        writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n")
        status, _ = await answer(reader)
    finally:
        writer.close()
    assert status == 400
