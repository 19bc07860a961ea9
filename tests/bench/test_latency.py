"""What Headrace adds to the time to first token, over the same backend called directly.

Prints and asserts no figure. One open load of 20 requests a second at random phases goes through the router's OpenAI path,
another one straight to the backend, interleaved in the same seconds, by the same client: whatever the machine does hits both.
``HEADRACE_BENCH_SECONDS`` sets the length of each run.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlsplit

import pytest

from services.cli.parts import BackendAt
from services.cli.stack import Stack
from services.runtime.server import Sync
from support.proving import MODEL, Proof
from support.stub_server import Pace, StubProcess

pytestmark = pytest.mark.bench

SECONDS = float(os.environ.get("HEADRACE_BENCH_SECONDS", "30"))
RATE = 20.0
WARM_UP = 20
"""Requests before it counts: imports, connections, the first statistics."""
TOKENS, SLOTS = 10, 8


@pytest.mark.parametrize("sync", ["10s", "always"])
async def test_time_to_first_token(sync: Sync, tmp_path: Path) -> None:
    config = tmp_path / "headrace.toml"
    config.write_text(f"[worker]\nslots = {SLOTS}\n")
    async with StubProcess(tmp_path, MODEL, Pace(token_s=0.005)) as stub:
        backends = [BackendAt("desk", stub.url)]
        async with Stack(tmp_path / "data", backends=backends, sync=sync, config=config, restart=False) as stack:
            proof = Proof(stack)
            await proof.quiet()
            through, direct = (Target(url) for url in (stack.router_url, stub.url))
            for target in (through, direct):
                await asyncio.gather(*(target.ask() for _ in range(SLOTS)))
                for _ in range(WARM_UP):
                    await target.ask()
                target.firsts.clear()
            rng = random.Random(1)
            await asyncio.gather(*(load(target, rng) for target in (through, direct)))
            await proof.http.aclose()
    floor = median(direct.firsts)
    added = [first - floor for first in through.firsts]
    print(
        f"\ntime to first token, sync {sync}: added p50 {ms(median(added))}, p99 {ms(p99(added))} "
        f"({len(added)} requests at {RATE:g}/s; directly p50 {ms(floor)}, p99 {ms(p99(direct.firsts))})"
    )
    assert not through.failed and not direct.failed


class Target:
    """One base URL and the first-token times it gave. A client as thin as possible: a socket."""

    def __init__(self, url: str) -> None:
        self.host, self.port = str(urlsplit(url).hostname), int(urlsplit(url).port or 80)
        self.firsts: list[float] = []
        self.failed: list[bytes] = []

    async def ask(self) -> None:
        message = {"role": "user", "content": f"What is {random.randrange(10**6)} in words?"}
        body = json.dumps({"model": MODEL, "messages": [message], "max_tokens": TOKENS, "stream": True}).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: {self.host}\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
        began = time.perf_counter()
        reader, writer = await asyncio.open_connection(self.host, self.port)
        writer.write(request)
        received, first = b"", 0.0
        while piece := await reader.read(65536):
            received += piece
            if not first and b'"content":"w0 ' in received:
                first = time.perf_counter() - began
        writer.close()
        if first and b"[DONE]" in received:
            self.firsts.append(first)
        else:
            self.failed.append(received)


async def load(target: Target, rng: random.Random) -> None:
    """Open load: a request that is slow does not hold back the next one."""
    loop, asked = asyncio.get_running_loop(), list[asyncio.Task[None]]()
    start = loop.time()
    for number in range(int(SECONDS * RATE)):
        due = start + (number + rng.random()) / RATE
        await until(due - loop.time())
        asked.append(asyncio.create_task(target.ask()))
    await asyncio.gather(*asked)


async def until(seconds: float) -> None:
    """An exact timer: ``eventually`` would look too seldom and cost too much."""
    due = asyncio.Event()
    asyncio.get_running_loop().call_later(max(0.0, seconds), due.set)
    await due.wait()


def p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"
