"""The routers that people use today, as small policies in front of the same machines, for the benches beside ours.

Answers "how long does this work take with that policy?". They talk to the model servers directly and queue inside them, as such
routers do; none of them knows a speed. Ties are drawn. They are as good as their definition: no HTTP, no store, no process
between the client and the machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Protocol

from support.http_lines import Lines, Reply

Send = Callable[[Lines], Awaitable[Reply]]
"""One request, to wherever these lines lead."""
Ask = Callable[[int], Awaitable[Reply]]
"""A closed-loop client's number -> the answer to its next request."""


class Policy(Protocol):
    """``in_flight`` has a number for each machine, the one asked for not yet counted."""

    def choose(self, in_flight: Sequence[int], client: int) -> int: ...


class Random:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def choose(self, in_flight: Sequence[int], client: int) -> int:
        return self.rng.randrange(len(in_flight))


class RoundRobin:
    def __init__(self, rng: random.Random) -> None:
        self.next = rng.randrange(1 << 16)

    def choose(self, in_flight: Sequence[int], client: int) -> int:
        self.next += 1
        return self.next % len(in_flight)


class LeastInFlight:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def choose(self, in_flight: Sequence[int], client: int) -> int:
        least = min(in_flight)
        return self.rng.choice([n for n, running in enumerate(in_flight) if running == least])


class GpuStack:
    """GPUStack 2.3 with both plugins that need no service, weights 1 and 1: session affinity by rendezvous hashing (scores 1,
    1/2, 1/4, ... by rank) and least in-flight (1/(1 + n)), each normalised to sum 1. Every client is a session."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def choose(self, in_flight: Sequence[int], client: int) -> int:
        targets = range(len(in_flight))
        ranked = sorted(targets, key=lambda n: hashlib.sha256(f"{client}/{n}".encode()).digest())
        affinity = [2.0 ** -ranked.index(n) for n in targets]
        least = [1.0 / (1 + running) for running in in_flight]
        votes = [affinity[n] / sum(affinity) + least[n] / sum(least) for n in targets]
        return self.rng.choice([n for n in targets if votes[n] == max(votes)])


POLICIES: dict[str, Callable[[random.Random], Policy]] = {
    "random": Random,
    "round robin": RoundRobin,
    "least in-flight": LeastInFlight,
    "GPUStack": GpuStack,
}


class Direct:
    """``async with Direct(policy, urls) as direct: await direct.send(request, client)``."""

    def __init__(self, policy: Policy, urls: Sequence[str]) -> None:
        self._policy = policy
        self._machines = [Lines(url) for url in urls]
        self._in_flight = [0] * len(urls)
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Direct:
        for machine in self._machines:
            await self._open.enter_async_context(machine)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def send(self, request: Send, client: int) -> Reply:
        chosen = self._policy.choose(self._in_flight, client)
        self._in_flight[chosen] += 1
        try:
            return await request(self._machines[chosen])
        finally:
            self._in_flight[chosen] -= 1


class Pull(Direct):
    """One queue, first in, first out; whichever machine is free takes the next."""

    def __init__(self, urls: Sequence[str]) -> None:
        super().__init__(LeastInFlight(random.Random(0)), urls)
        self._free = asyncio.Queue[int]()
        for number in range(len(urls)):
            self._free.put_nowait(number)

    async def send(self, request: Send, client: int) -> Reply:
        machine = await self._free.get()
        try:
            return await request(self._machines[machine])
        finally:
            self._free.put_nowait(machine)


async def closed_loop(ask: Ask, *, requests: int, clients: int, limit_s: float | None = None) -> float | None:
    """Seconds until ``requests`` were answered, each client sending its next when it has its last answer; None after ``limit_s``.
    Raises RuntimeError for an answer that is none."""
    loop, left = asyncio.get_running_loop(), iter(range(requests))

    async def one(client: int) -> None:
        for _ in left:
            reply = await ask(client)
            if reply.status != 200:
                raise RuntimeError(f"HTTP {reply.status}: {reply.body[:200]!r}")

    began = loop.time()
    try:
        async with asyncio.timeout(limit_s), asyncio.TaskGroup() as group:
            for client in range(clients):
                group.create_task(one(client))
    except TimeoutError:
        return None
    return loop.time() - began
