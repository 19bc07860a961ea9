"""What a client of HTTP/1.0 gets: plain bytes until the connection ends."""

from __future__ import annotations

import asyncio
import json
from urllib.parse import urlsplit

import pytest

from support.eventually import PATIENCE_S


async def asked(url: str, version: str, method: str, path: str, body: bytes = b"") -> tuple[bytes, bytes]:
    """Head and body until the server hangs up."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = f"{method} {path} HTTP/{version}\r\nHost: h\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    try:
        said = await asyncio.wait_for(reader.read(), PATIENCE_S)
    finally:
        writer.close()
    head_bytes, _, rest = said.partition(b"\r\n\r\n")
    return head_bytes.lower(), rest


@pytest.mark.parametrize("stream", [True, False])
async def test_an_old_client_gets_no_chunks(url: str, stream: bool) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "stream": stream}).encode()
    head, said = await asked(url, "1.0", "POST", "/v1/chat/completions", body)
    assert b"200 ok" in head and b"transfer-encoding" not in head
    assert (b"content-length" in head) is not stream
    if stream:
        events = said.split(b"\n\n")
        assert events.pop() == b"" and all(event.startswith(b"data: ") for event in events)
        assert events[-1] == b"data: [DONE]"
    else:
        assert json.loads(said)["object"] == "chat.completion"


async def test_an_old_clients_head_alone_has_no_body(url: str) -> None:
    head, said = await asked(url, "1.0", "HEAD", "/api/version")
    assert (b"200 ok" in head, said) == (True, b"")


async def test_a_newer_client_gets_chunks_as_ever(url: str) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": "Hi"}], "stream": True}).encode()
    head, said = await asked(url, "1.1", "POST", "/v1/chat/completions", body)
    assert b"transfer-encoding: chunked" in head and said.endswith(b"0\r\n\r\n")
