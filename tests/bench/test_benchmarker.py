"""How long the benchmarker takes to begin on a long log, what it keeps of it, and how long it thinks about a large fleet.

Prints and asserts no figure. ``HEADRACE_BENCH_EVENTS`` sets the size of the log (1,000,000).
"""

from __future__ import annotations

import asyncio
import os
import time
from typing import cast

import psutil
import pytest

from services.benchmarker.asking import Asking
from services.benchmarker.ground import Ground
from services.benchmarker.hearing import BACKLOG, Hearing
from services.benchmarker.owing import Owing
from services.runtime.bus import Bus
from services.runtime.clock import SystemClock
from services.runtime.settings import Benchmarker as Settings
from support.bench_world import World
from support.history import many
from support.projecting import store_events

pytestmark = pytest.mark.bench

EVENTS = int(os.environ.get("HEADRACE_BENCH_EVENTS", "1000000"))
WORKERS, MODELS, DOMAINS = 200, 40, 8


async def test_the_start_on_a_long_log(bus: Bus) -> None:
    last = await store_events(bus, many(EVENTS))
    ground = Ground(bus, Asking(bus), SystemClock(), Settings())
    hearing, process = Hearing(ground), psutil.Process()
    before, began = process.memory_info().rss, time.monotonic()
    await hearing.start()
    took_s, grown = time.monotonic() - began, process.memory_info().rss - before
    await hearing.stop()
    print(
        f"\nbenchmarker: {last:,} events, the last {BACKLOG:,} read in {took_s:.1f} s, {grown / 1e6:.0f} MB more; "
        f"{len(ground.fleet.machines)} machines, {len(ground.fleet.tasks)} open tasks, {len(ground.fleet.use.pairs)} pairs in use"
    )


async def test_the_debts_of_a_large_fleet() -> None:
    world = World()
    for worker in range(WORKERS):
        world.join(f"w{worker}", *(f"m{model}" for model in range(MODELS)))
    for model in range(MODELS):
        for domain in range(DOMAINS):
            world.ran(f"w{model}", f"m{model}", f"d{domain}")
    world.passes(20)
    clock = SystemClock()
    ground = Ground(cast(Bus, None), cast(Asking, None), clock, Settings(), world.fleet, world.stats)
    ground.ahead_us = world.now_us - int(clock.monotonic() * 1e6)
    gaps, last_s = [0.0], time.monotonic()

    async def others() -> None:
        nonlocal last_s
        while True:
            await asyncio.sleep(0)
            gaps.append(time.monotonic() - last_s)
            last_s = time.monotonic()

    beside, began = asyncio.create_task(others()), time.monotonic()
    found = await Owing(ground).look(1)
    took_s = time.monotonic() - began
    beside.cancel()
    print(
        f"\nbenchmarker: {len(found):,} debts of {WORKERS} machines with {MODELS} models in {DOMAINS} domains in {took_s:.1f} s; "
        f"others waited {max(gaps) * 1e3:.0f} ms at most"
    )
