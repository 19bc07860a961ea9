"""What do those who mean ill cost everybody else? The same small load beside them and without them.

Prints figures; asserts only that nobody of the small load was refused. The load is chats of a few tokens from a stand-in, at an
open rate, over real sockets. Beside it, all at once: bodies of 40 MB, deep JSON, text that is none, heads of a byte
per second, bodies that never end, and 2,000 idle connections. ``HEADRACE_BENCH_SECONDS`` sets the length of each run.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import urlsplit

import pytest

from support.http_lines import Lines
from support.loads import open_load, until
from support.stand_in_fleet import stand_in_fleet
from support.stand_ins import Machine, StandIns

pytestmark = pytest.mark.bench

SECONDS = float(os.environ.get("HEADRACE_BENCH_SECONDS", "30"))
RATE = 20.0
IDLE, SLOW = 2_000, 200
Work = Callable[[str, int], Awaitable[None]]
"""From a host and a port."""
LARGE = b"x" * 40_000_000
DEEP = b"[" * 2_000_000
BROKEN = b'{"messages": "' + b"\xff" * 1_000_000 + b'"}'
VALID = b'{"messages": [{"role": "user", "content": "' + b"water " * 5_000_000 + b'"}]}'
"""30 MB that are a task like any other: it holds one of the slots for a minute."""
POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\n"


async def test_what_hostile_senders_cost_the_others(tmp_path: Path) -> None:
    async with (
        StandIns(tmp_path, [Machine("m", decode=1000.0, slots=8)]) as urls,
        stand_in_fleet(tmp_path, urls, slots=8) as (proof, lines),
    ):
        await load(lines, 3.0)
        before = await load(lines, SECONDS)
        async with hostile(proof.stack.router_url) as answered:
            beside = await load(lines, SECONDS)
        after = await load(lines, SECONDS)
    alone = before + after
    print(
        f"\nalone p50 {ms(median(alone))}, p95 {ms(p95(alone))}; beside hostile senders p50 {ms(median(beside))}, "
        f"p95 {ms(p95(beside))}: {p95(beside) / p95(alone):.2f} times the p95; the large bodies were answered {dict(answered)}"
    )


async def load(lines: Lines, seconds: float) -> list[float]:
    async def ask(number: int) -> None:
        asked = {"model": "stand-in", "max_tokens": 4, "messages": [{"role": "user", "content": f"What is {number}?"}]}
        reply = await lines.post("/v1/chat/completions", asked)
        assert reply.status == 200, reply.body

    return await open_load(ask, rate=RATE, seconds=seconds, rng=random.Random(1))


@asynccontextmanager
async def hostile(url: str) -> AsyncIterator[Counter[str]]:
    """All of them, for as long as the block runs. What the large ones were answered."""
    answered: Counter[str] = Counter()
    address = urlsplit(url)
    host, port = str(address.hostname), int(address.port or 80)
    works: list[Work] = [*[idle] * IDLE, *[slow_head] * SLOW, *[slow_body] * SLOW]
    works += [sender(each, answered) for each in (LARGE, LARGE, DEEP, BROKEN, VALID)]
    running = [asyncio.create_task(again(work, host, port)) for work in works]
    await until(2.0)
    try:
        yield answered
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def again(work: Work, host: str, port: int) -> None:
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            await work(host, port)
        await until(0.2)


async def idle(host: str, port: int) -> None:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        await reader.read()
    finally:
        writer.close()


async def slow_head(host: str, port: int) -> None:
    await trickle(host, port, POST)


async def slow_body(host: str, port: int) -> None:
    await trickle(host, port, b"", POST + b"Content-Length: 1000000\r\n\r\n{")


async def trickle(host: str, port: int, rest: bytes, first: bytes = b"") -> None:
    """A byte a second until the server has enough."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(first)
        for number in range(3600):
            writer.write(rest[number : number + 1] or b" ")
            await until(1.0)
            if reader.at_eof() or writer.is_closing():
                return
    finally:
        writer.close()


def sender(body: bytes, answered: Counter[str]) -> Work:
    async def send(host: str, port: int) -> None:
        reader, writer = await asyncio.open_connection(host, port)
        try:
            writer.write(POST + b"Content-Length: %d\r\n\r\n" % len(body))
            for at in range(0, len(body), 1 << 18):
                writer.write(body[at : at + (1 << 18)])
                await writer.drain()
            answered[(await reader.readline()).decode().strip()] += 1
        finally:
            writer.close()

    return send


def p95(values: list[float]) -> float:
    return quantiles(values, n=20)[18]


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"
