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
from services.runtime.take import Taker
from support.eventually import eventually
from support.proving import Proof, stub_fleet
from support.stub_server import Pace

pytestmark = pytest.mark.bench

ROUNDS = int(os.environ.get("HEADRACE_BENCH_ROUNDS", "300"))
ITEM_BYTES = 600
"""About the size of a work item."""
GROUP = ("bench", "roundtrip")


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
            trips = []
            for _ in range(ROUNDS):
                trips.append(await round_trip(giver, pulls))
                await one_task(proof, ways)
            await pulls.close()
    taken = ways.seconds()[ROUNDS // 10 :]
    trips = trips[ROUNDS // 10 :]
    ratio = median(taken) / median(trips)
    print(
        f"\nacknowledged submission to worker, sync {sync}: p50 {ms(median(taken))}, p90 {ms(p90(taken))}; "
        f"one publish to its pull: p50 {ms(median(trips))}, p90 {ms(p90(trips))}; ratio {ratio:.2f} ({len(taken)} of each)"
    )
    assert len(taken) == len(trips)


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


async def round_trip(giver: Bus, pulls: Taker) -> float:
    """Seconds from the publish to the item in the hands of a puller that waited for it."""
    task = new_id()
    subject = item_subject(*GROUP, "any", task, 1)
    data = msgspec.json.encode("x" * ITEM_BYTES)
    round_ = await pulls.arm([(group_durable(*GROUP), 0)], 1, 5.0)
    began = time.time()
    publish = asyncio.create_task(giver.publish_stored(subject, data, item_id(task, 1)))
    (item,) = await round_.items()
    seconds = time.time() - began
    await publish
    await item.ack()
    await round_.close()
    return seconds


def p90(values: list[float]) -> float:
    return quantiles(values, n=10)[8]


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"
