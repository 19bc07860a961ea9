"""How long an acknowledged submission is on its way to a worker, beside one publish and its pull on the same server.

Prints and asserts no figure. The way is measured from the note of the fact (the server sends it with the ack, once it has stored)
to the instant at which the worker took the item (``task.started`` says it), on this machine's one clock. Both are measured in
turn, so that whatever the machine does hits both.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from statistics import median, quantiles

import msgspec
import pytest
from nats.aio.msg import Msg

from schemas.codec import decode
from schemas.events import TaskStarted, TaskSubmitted
from schemas.streams import group_consumer
from schemas.subjects import group_durable, item_id, item_subject
from services.runtime.bus import Bus
from services.runtime.ids import new_id
from services.runtime.provision import ensure_consumer
from services.runtime.server import Sync
from services.runtime.take import Round, Taker
from support.eventually import eventually
from support.proving import Proof, stub_fleet
from support.stub_server import Pace

pytestmark = pytest.mark.bench

ROUNDS = int(os.environ.get("HEADRACE_BENCH_ROUNDS", "300"))
ITEM_BYTES = 600
"""About the size of a work item."""
GROUP = ("bench", "roundtrip")
PULL = [(group_durable(*GROUP), 0)]


@pytest.mark.parametrize("sync", ["10s", "always"])
async def test_submission_to_worker(sync: Sync, tmp_path: Path) -> None:
    async with stub_fleet(tmp_path, {"one": Pace(token_s=0.0)}, sync=sync) as (proof, _):
        url = proof.stack.nats_url
        async with await Bus.connect(url, name="giver") as giver, await Bus.connect(url, name="taker") as taker:
            await ensure_consumer(giver, group_consumer(*GROUP, cap=1, members=1))
            ways = Ways()
            for subject in ("note.ev.task.submitted.>", "note.ev.task.started.>"):
                await taker.listen(subject, ways.heard)
            pulls = Taker(taker)
            standing, asked = list[float](), list[float]()
            for _ in range(ROUNDS):
                standing.append(await to_a_standing_pull(giver, pulls))
                asked.append(await publish_then_pull(giver, pulls))
                await one_task(proof, ways)
            await pulls.close()
    taken, standing, asked = (values[ROUNDS // 10 :] for values in (ways.seconds(), standing, asked))
    print(
        f"\nacknowledged submission to worker, sync {sync}: p50 {ms(median(taken))}, p90 {ms(p90(taken))} "
        f"({len(taken)} of each)\n"
        f"  one publish, its ack, one pull, its item: p50 {ms(median(asked))}, ratio {median(taken) / median(asked):.2f}\n"
        f"  one publish to a pull that stands already: p50 {ms(median(standing))}, "
        f"ratio {median(taken) / median(standing):.2f}"
    )
    assert len(taken) == len(standing) == len(asked)


class Ways:
    """When each submission was acknowledged, and when its worker took it."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, float] = {}
        self.taken: dict[str, float] = {}

    def heard(self, message: Msg) -> None:
        now = time.time()
        event = decode(message.data)
        if isinstance(event, TaskSubmitted):
            self.acknowledged[event.task] = now
        elif isinstance(event, TaskStarted):
            self.taken[event.task] = event.at

    def seconds(self) -> list[float]:
        return [at - self.acknowledged[task] for task, at in self.taken.items()]


async def one_task(proof: Proof, ways: Ways) -> None:
    task = await proof.submit(max_tokens=1)
    await eventually(lambda: task in ways.taken, every_s=0.005)
    await proof.ended(task)


async def to_a_standing_pull(giver: Bus, pulls: Taker) -> float:
    """Seconds from the publish to the item in the hands of a puller that waited for it: half of each way."""
    round_ = await pulls.arm(PULL, 1, 5.0)
    began = time.time()
    publish = asyncio.create_task(store_item(giver))
    seconds = await item_of(round_) - began
    await publish
    return seconds


async def publish_then_pull(giver: Bus, pulls: Taker) -> float:
    """Seconds for both round trips, one after the other."""
    began = time.time()
    await store_item(giver)
    return await item_of(await pulls.arm(PULL, 1, 5.0)) - began


async def store_item(giver: Bus) -> None:
    task = new_id()
    data = msgspec.json.encode("x" * ITEM_BYTES)
    await giver.publish_stored(item_subject(*GROUP, "any", task, 1), data, item_id(task, 1))


async def item_of(round_: Round) -> float:
    """When the round's one item came."""
    (item,) = await round_.items()
    at = time.time()
    await item.ack()
    await round_.close()
    return at


def p90(values: list[float]) -> float:
    return quantiles(values, n=10)[8]


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"
