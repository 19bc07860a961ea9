"""Load on something that answers: open (so many a second, whatever happens) and closed (so many at once).

Answers "how long took each answer, and how many came a second?". It never counts an answer that came after the time was up.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import count
from statistics import median, quantiles

import psutil

NUMBERS = count()
"""No two requests of a process have the same: who asks the same again within a minute is taken to be unhappy with the answer."""

Ask = Callable[[int], Awaitable[None]]
"""The request's number; returns when its answer is whole, and raises where it is none."""


async def open_load(ask: Ask, *, rate: float, seconds: float, rng: random.Random) -> list[float]:
    """Seconds for each request, at random phases; a slow one holds back nobody."""
    loop, asked = asyncio.get_running_loop(), list[asyncio.Task[float]]()
    start = loop.time()
    for number in range(int(seconds * rate)):
        await until(start + (number + rng.random()) / rate - loop.time())
        asked.append(asyncio.create_task(_timed(ask, next(NUMBERS))))
    return await asyncio.gather(*asked)


async def closed_load(ask: Ask, *, clients: int, seconds: float, warm_up_s: float = 1.0) -> float:
    """Answers a second, once ``warm_up_s`` have passed. The clients begin one after the other within that time: where all begin
    at once and each task takes as long as the others, they come and go as one, for ever."""
    loop, counted = asyncio.get_running_loop(), 0
    began = loop.time()
    start = began + warm_up_s
    end = start + seconds

    async def one(number: int) -> None:
        nonlocal counted
        await until(began + warm_up_s * number / clients - loop.time())
        while loop.time() < end:
            await ask(next(NUMBERS))
            counted += start <= loop.time() < end

    async with asyncio.TaskGroup() as group:
        for number in range(clients):
            group.create_task(one(number))
    return counted / seconds


async def until(seconds: float) -> None:
    """An exact timer: ``eventually`` would look too seldom and cost too much."""
    due = asyncio.Event()
    asyncio.get_running_loop().call_later(max(0.0, seconds), due.set)
    await due.wait()


async def _timed(ask: Ask, number: int) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await ask(number)
    return loop.time() - began


class Cores:
    """How much of a core each named process used since ``__init__``."""

    def __init__(self, processes: dict[str, int]) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in processes.items()}
        self._began = asyncio.get_running_loop().time()
        self._before = {name: _cpu_s(process) for name, process in self._processes.items()}

    def used(self) -> str:
        wall = asyncio.get_running_loop().time() - self._began
        shares = {name: (_cpu_s(process) - self._before[name]) / wall for name, process in self._processes.items()}
        return ", ".join(f"{name} {share:.2f}" for name, share in shares.items())


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def p50_p99(values: list[float]) -> str:
    return f"p50 {median(values) * 1e3:.1f} ms, p99 {quantiles(values, n=100)[98] * 1e3:.1f} ms"
