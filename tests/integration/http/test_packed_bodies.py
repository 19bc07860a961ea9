"""Bodies that were packed for their way, honest and hostile, on every surface."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable

import httpx
import pytest

HI = {"messages": [{"role": "user", "content": "Hi"}], "prompt": "Hi", "model": "qwen3", "input": "Hi"}
BODY = json.dumps(HI).encode()
PATHS = ("/route", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat")


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [("gzip", gzip.compress), ("GZIP", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)],
)
async def test_a_packed_body_is_unpacked(
    http: httpx.AsyncClient, encoding: str, packed: Callable[[bytes], bytes]
) -> None:
    reply = await http.post("/v1/chat/completions", content=packed(BODY), headers={"content-encoding": encoding})
    assert reply.status_code == 200, reply.text


@pytest.mark.parametrize("path", PATHS)
async def test_an_encoding_that_nobody_unpacks_here_is_named(http: httpx.AsyncClient, path: str) -> None:
    reply = await http.post(path, content=b"\x1b\x03", headers={"content-encoding": "br"})
    assert reply.status_code == 415
    assert "'br'" in reply.text and "gzip or deflate" in reply.text


@pytest.mark.parametrize("path", PATHS)
async def test_what_unpacks_to_more_than_the_limit_is_refused_before_it_is_there(
    http: httpx.AsyncClient, path: str
) -> None:
    bomb = gzip.compress(b" " * 300_000_000, compresslevel=1)
    reply = await http.post(path, content=bomb, headers={"content-encoding": "gzip"})
    assert reply.status_code == 413
    assert "the limit is 33554432" in reply.text


@pytest.mark.parametrize(
    ("body", "words"),
    [(BODY, "and is not"), (gzip.compress(BODY)[:-9], "broke off"), (b"", "broke off")],
    ids=["not packed", "cut", "nothing"],
)
async def test_what_is_not_packed_as_it_says_is_the_senders_mistake(
    http: httpx.AsyncClient, body: bytes, words: str
) -> None:
    reply = await http.post("/v1/chat/completions", content=body, headers={"content-encoding": "gzip"})
    assert reply.status_code == 400
    assert words in reply.json()["error"]["message"]
