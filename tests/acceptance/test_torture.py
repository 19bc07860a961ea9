"""Random kills and freezes of real processes under load, and then the whole log is checked.

``HEADRACE_TORTURE_ROUNDS`` sets how many blows fall, ``HEADRACE_TORTURE_SEED`` which ones; the seed is printed.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import msgspec
import pytest

from services.runtime.bus import Bus
from support.eventually import eventually
from support.proving import Proof, check_promises, passed, read_log, stub_fleet
from support.stub_server import Pace, text_of

pytestmark = pytest.mark.torture

MACHINES, SLOTS, CLIENTS = 3, 2, 6
ENDS = ("task.completed", "task.failed", "task.cancelled", "task.dead")
PARTS = (*(f"worker m{n}" for n in range(MACHINES)), "router", "nats", "projector")


async def test_random_blows_lose_and_repeat_nothing(tmp_path: Path, scale: Callable[[int, int], int]) -> None:
    rounds = int(os.environ.get("HEADRACE_TORTURE_ROUNDS", scale(6, 60)))
    seed = int(os.environ.get("HEADRACE_TORTURE_SEED", time.time_ns() % 100_000))
    rng = random.Random(seed)
    print(f"\ntorture: {rounds} blows, HEADRACE_TORTURE_SEED={seed}")
    machines = {f"m{n}": Pace(token_s=0.01 * (n + 1)) for n in range(MACHINES)}
    async with stub_fleet(tmp_path, machines, sync="always", slots=SLOTS) as (proof, servers):
        async with submitting(proof, random.Random(seed + 1)) as accepted:
            for number in range(rounds):
                reached = len(accepted) + rng.randrange(5, 30)
                await eventually(lambda least=reached: len(accepted) >= least, within_s=120)  # type: ignore[misc]
                await blow(proof, rng, number)
        counts = check_promises(await proof.log(), accepted)
        print(f"torture: {len(accepted)} tasks acknowledged, each with one end; {counts}")
        assert {kind for kind in counts if kind in ENDS} == {"task.completed"}
        assert max(server.most for server in servers.values()) <= SLOTS
        await projector_followed(proof)


async def blow(proof: Proof, rng: random.Random, number: int) -> None:
    part, after_s = rng.choice(PARTS), rng.choice((0.0, rng.uniform(0, 3)))
    if rng.random() < 0.4:
        frozen_s = rng.uniform(0.1, 8.0)
        print(f"  {number}: {part} frozen for {frozen_s:.1f} s")
        with proof.frozen(part):
            await passed(frozen_s)
    else:
        print(f"  {number}: {part} killed, back after {after_s:.1f} s")
        await proof.kill(part)
        await passed(after_s)
        await proof.back(part)


@asynccontextmanager
async def submitting(proof: Proof, rng: random.Random) -> AsyncIterator[list[str]]:
    """Clients that submit one task after the other and wait for its answer; ``accepted`` are those that got a 202. A refusal is
    tried again. At the end each finishes its last task."""
    accepted: list[str] = []
    stop = asyncio.Event()

    async def client(name: str) -> None:
        while not stop.is_set():
            tokens = rng.randrange(1, 60)
            try:
                task = await proof.submit(max_tokens=tokens, client=name)
            except httpx.HTTPError:
                await passed(0.02)
                continue
            accepted.append(task)
            end = await proof.ended(task, within_s=120)
            assert end["answer"]["text"] == text_of(tokens), end

    clients = [asyncio.create_task(client(f"c{n}")) for n in range(CLIENTS)]
    try:
        yield accepted
    finally:
        stop.set()
        await asyncio.gather(*clients)


async def projector_followed(proof: Proof) -> None:
    """It has folded the whole log, and found nothing that it could not."""
    async with await Bus.connect(proof.stack.nats_url, name="proof") as bus:
        last = (await read_log(bus))[-1].seq

        async def look() -> bool:
            status = msgspec.json.decode(await bus.request("rpc.projector.status", b"{}"))
            assert status["dead"] == 0
            return bool(status["position"] >= last)

        await eventually(look)
