"""What a token costs on its way through the router, and how long the way takes, with as many streams open as a busy office has.

Prints figures; asserts that every stream ends whole and in order. 300 streams begin at random phases and get 1,000 tokens a
second in total from stand-ins on real sockets; each token carries the moment at which it was sent. The same load is then sent to
the stand-ins directly: what the machine and the client do to it shows there. ``HEADRACE_BENCH_SECONDS`` sets the length.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple
from urllib.parse import urlsplit

import psutil
import pytest

from support.loads import until
from support.stand_in_fleet import stand_in_fleet
from support.stand_ins import Machine, StandIns

pytestmark = pytest.mark.bench

SECONDS = float(os.environ.get("HEADRACE_BENCH_SECONDS", "30"))
STREAMS, RATE = 300, 1000.0
MACHINES = 4
EACH = RATE / STREAMS
TOKENS = max(8, int(SECONDS * EACH))
SPREAD_S = 3.0
"""The streams begin within this: ten times the time between two tokens of one of them, so the phases are random."""
TOKEN = re.compile(rb'"content":"w(\d+)@([0-9.]+) "')


class Way(NamedTuple):
    """One token: when it arrived, and how long it took, in seconds."""

    at: float
    took: float


class Figures(NamedTuple):
    """``flowing``: the ways of the tokens that came while all streams were open; ``spent_s`` is the CPU of that time."""

    flowing: list[float]
    lasted_s: float
    spent_s: float
    tokens: int
    all_s: float


async def test_three_hundred_streams(tmp_path: Path) -> None:
    slots = STREAMS // MACHINES
    machines = [Machine(f"m{n}", decode=EACH, slots=slots, stamps=True) for n in range(MACHINES)]
    async with StandIns(tmp_path, machines) as urls, stand_in_fleet(tmp_path, urls, slots=slots) as (proof, _):
        router = psutil.Process(proof.pid("router"))
        through = await load(lambda _: proof.stack.router_url, lambda: sum(router.cpu_times()[:2]))
        addresses = list(urls.values())
        directly = await load(lambda n: addresses[n % MACHINES], lambda: 0.0)
    print(
        f"\n{STREAMS} streams: {through.spent_s / len(through.flowing) * 1e3:.3f} ms of the router's CPU per token while all "
        f"are open ({len(through.flowing) / through.lasted_s:.0f} tokens/s), {through.all_s / through.tokens * 1e3:.3f} ms with "
        f"their submissions and ends; a token reaches the client after {ms(through.flowing)} (directly {ms(directly.flowing)})"
    )


async def load(url_of: Callable[[int], str], cpu_s: Callable[[], float]) -> Figures:
    """All streams to their end, and the CPU that it took. Each must be whole and in order."""
    loop, rng = asyncio.get_running_loop(), random.Random(1)
    streams, before, start = list[Stream](), cpu_s(), loop.time()
    for number, after in enumerate(sorted(rng.uniform(0.0, SPREAD_S) for _ in range(STREAMS))):
        await until(start + after - loop.time())
        stream, url = Stream(loop), urlsplit(url_of(number))
        streams.append(stream)
        await loop.create_connection(lambda stream=stream: stream, str(url.hostname), int(url.port or 80))
    async with asyncio.timeout(SPREAD_S + TOKENS / EACH + 60):
        await asyncio.gather(*(stream.began for stream in streams))
        since, flowing_from = time.monotonic(), cpu_s()
        await asyncio.wait([stream.ended for stream in streams], return_when=asyncio.FIRST_COMPLETED)
        ended, flowing_to = time.monotonic(), cpu_s()
        await asyncio.gather(*(stream.ended for stream in streams))
    assert [stream.said for stream in streams if stream.numbers != list(range(TOKENS))] == []
    ways = [way for stream in streams for way in stream.ways]
    flowing = [way.took for way in ways if since <= way.at <= ended]
    return Figures(flowing, ended - since, flowing_to - flowing_from, len(ways), cpu_s() - before)


class Stream(asyncio.Protocol):
    """One streamed chat, read as it comes by a client that costs nearly nothing."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.began: asyncio.Future[None] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.ways: list[Way] = []
        self.numbers: list[int] = []
        self.said = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        message = {"role": "user", "content": f"Tell me about {id(self)} in a sentence."}
        asked = {"model": "stand-in", "messages": [message], "max_tokens": TOKENS, "stream": True}
        body = json.dumps(asked).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: {len(body)}\r\n\r\n"
        transport.write(head.encode() + body)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self.said = data[-4096:]
        for found in TOKEN.finditer(data):
            self.ways.append(Way(now, now - float(found[2])))
            self.numbers.append(int(found[1]))
            if not self.began.done():
                self.began.set_result(None)
        if b"[DONE]" in data:
            self._transport.close()

    def connection_lost(self, _error: Exception | None) -> None:
        for told in (self.began, self.ended):
            if not told.done():
                told.set_result(None)


def ms(seconds: list[float]) -> str:
    return f"p50 {median(seconds) * 1e3:.2f} ms, p99 {quantiles(seconds, n=100)[98] * 1e3:.2f} ms"
