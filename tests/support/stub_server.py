"""A model server without a model: deterministic text at an exact pace, in OpenAI's form.

Answers "what would a backend do that costs nothing and never varies?". For proofs that need a known length and for benches that
must not measure the backend. ``async with StubServer({...})`` serves in this process; ``StubProcess`` in one of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from support.eventually import eventually

HEAD = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: %s\r\n\r\n"
SSE, JSON = b"text/event-stream", b"application/json"


class Pace(NamedTuple):
    """Seconds to the first token, and between two."""

    first_s: float = 0.0
    token_s: float = 0.005


def text_of(tokens: int) -> str:
    """What it answers to ``max_tokens``."""
    return "".join(_word(index) for index in range(tokens))


def _word(index: int) -> str:
    return f"w{index} "


class StubServer:
    """``models``: name -> pace. ``running`` counts the streams now, ``most`` is the most there were at once."""

    def __init__(self, models: Mapping[str, Pace]) -> None:
        self.models = dict(models)
        self.running = self.most = 0
        self.url = ""
        self.transports: set[asyncio.Transport] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> StubServer:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Line(self, loop), "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for transport in list(self.transports):
            transport.abort()

    async def serve(self) -> None:
        assert self._server is not None
        await self._server.serve_forever()


class _Line(asyncio.Protocol):
    """One connection, one request."""

    def __init__(self, server: StubServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server, self._loop = server, loop
        self._received = b""
        self._timer: asyncio.TimerHandle | None = None
        self._is_running = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.transports.add(transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, body = self._received.partition(b"\r\n\r\n")
        if not found:
            return
        method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        length = next((int(v) for k, _, v in _headers(head) if k.lower() == b"content-length"), 0)
        if len(body) < length:
            return
        if method == "GET":
            self._get(path)
        else:
            self._chat(json.loads(body))

    def _get(self, path: str) -> None:
        if path == "/v1/models":
            listed = [{"id": name, "object": "model", "owned_by": "stub"} for name in self._server.models]
            self._transport.write(HEAD % JSON + json.dumps({"object": "list", "data": listed}).encode())
        else:
            self._transport.write(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
        self._transport.close()

    def _chat(self, asked: dict[str, object]) -> None:
        self._pace = self._server.models[str(asked["model"])]
        self._left = self._tokens = int(str(asked["max_tokens"]))
        self._model = json.dumps(asked["model"])
        self._is_running = True
        self._server.running += 1
        self._server.most = max(self._server.most, self._server.running)
        self._transport.write(HEAD % SSE)
        self._due = self._loop.time() + self._pace.first_s
        self._later(self._pace.first_s)

    def _token(self) -> None:
        if not self._left:
            usage = {"prompt_tokens": 8, "completion_tokens": self._tokens, "total_tokens": 8 + self._tokens}
            end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage}
            self._transport.write(b"data: " + json.dumps(end).encode() + b"\n\ndata: [DONE]\n\n")
            self._transport.close()
            return
        word = _word(self._tokens - self._left)
        chunk = f'{{"model":{self._model},"choices":[{{"index":0,"delta":{{"content":"{word}"}}}}]}}'
        self._transport.write(f"data: {chunk}\n\n".encode())
        self._left -= 1
        self._due += self._pace.token_s
        self._later(self._due - self._loop.time())

    def _later(self, seconds: float) -> None:
        if seconds <= 0:
            self._token()
        else:
            self._timer = self._loop.call_later(seconds, self._token)

    def connection_lost(self, _error: Exception | None) -> None:
        self._server.running -= self._is_running
        self._server.transports.discard(self._transport)
        if self._timer is not None:
            self._timer.cancel()


class StubProcess:
    """The same server with a Python of its own, so that a bench's client does not share its loop with it."""

    def __init__(self, folder: Path, model: str, pace: Pace) -> None:
        self._port_file = folder / "stub.port"
        self._arguments = [model, str(pace.first_s), str(pace.token_s), str(self._port_file)]
        self.url = ""

    async def __aenter__(self) -> StubProcess:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.stub_server", *self._arguments],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )
        await eventually(lambda: self._process.poll() is not None or self._port_file.exists())
        self.url = f"http://127.0.0.1:{self._port_file.read_text()}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


def _headers(head: bytes) -> list[tuple[bytes, bytes, bytes]]:
    return [line.partition(b":") for line in head.split(b"\r\n")[1:]]


async def _serve(model: str, pace: Pace, port_file: Path) -> None:
    async with StubServer({model: pace}) as server:
        partial = port_file.with_suffix(".new")
        partial.write_text(server.url.rpartition(":")[2])
        partial.rename(port_file)
        await server.serve()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name, kind in (("model", str), ("first_s", float), ("token_s", float), ("port_file", Path)):
        parser.add_argument(name, type=kind)
    given = parser.parse_args()
    asyncio.run(_serve(given.model, Pace(given.first_s, given.token_s), given.port_file))
