"""Two real llama.cpp machines, nothing known, nobody asks: the fleet finds out by itself, and the first task already profits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from schemas.events import TaskCompleted, TaskSubmitted
from services.cli.demo_model import missing_parts
from services.cli.fleet_process import DemoFleet
from services.runtime.bus import Bus
from support.eventually import eventually
from support.proving import Json, Proof
from support.routers import whole_log

pytestmark = pytest.mark.skipif(
    bool(missing_parts()), reason=f"not installed: {[part.package for part in missing_parts()]}"
)
PROMPT = "What is the capital of Japan?"
SOON_S = 60.0
"""The promise, held by the probes' own record. What is waited for is three times that: two model servers share two cores with
whatever else runs."""


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[DemoFleet]:
    async with DemoFleet(tmp_path, sync="10s", restart=False, benchmarker=True) as started:
        yield started


async def levels(proof: Proof) -> dict[str, tuple[str, str]]:
    """Machine -> where its (decode, prefill) speed for a general question comes from."""
    body = (await proof.http.get("/route/preview", params={"prompt": PROMPT})).json()
    found: list[Json] = body["candidates"]
    return {row["worker_name"]: (row["decode"]["level"], row["prefill"]["level"]) for row in found}


async def told_alike(proof: Proof) -> bool:
    """Both workers share this host, and each reads its use by others only while it is idle itself: on a busy host one reading may
    be of a bad moment and the other of a good one, and a decision by it is right and none of this test's business."""
    uses = {worker["others_use"] for worker in (await proof.workers()).values()}
    assert None in uses or max(uses) - min(uses) < 0.2, f"others' use is told as {uses}"
    return True


def took_s(done: Sequence[TaskCompleted], since: float) -> float:
    """Seconds until the last probe was done, less what others took of the machine meanwhile: by what the facts say of both."""
    others_s = sum((event.others_use or 0.0) * (event.times.total_s or 0.0) for event in done)
    return max(event.at for event in done) - since - others_s


async def test_both_machines_are_measured_before_anybody_asks_and_the_first_task_goes_to_the_fast_one(
    fleet: DemoFleet,
) -> None:
    proof = Proof(fleet.stack)
    loop = asyncio.get_running_loop()
    try:
        ready, ready_at = loop.time(), time.time()
        whole = dict.fromkeys(fleet.machines, ("cell", "cell"))

        async def is_known() -> bool:
            return await levels(proof) == whole

        await eventually(is_known, within_s=3 * SOON_S, every_s=0.25)
        print(
            f"\nboth machines at level cell {loop.time() - ready:.1f} s after everything was ready (promised: {SOON_S:g} s)"
        )
        async with await Bus.connect(fleet.nats_url, name="test") as bus:
            log = await whole_log(bus)
            asked = [e for e in log if isinstance(e, TaskSubmitted)]
            assert {(e.client, e.kind, e.bench.purpose if e.bench else None) for e in asked} == {
                ("benchmarker", "bench", "probe")
            }
            done = [e for e in log if isinstance(e, TaskCompleted)]
            assert sorted(e.task for e in done) == sorted(e.task for e in asked)  # one execution each, and one sample
            assert len({e.worker for e in done}) == len(done) == len(fleet.machines)
            assert all(e.tokens.output == 64 and e.lane == e.worker for e in done)
            print(f"the last probe was done after {took_s(done, ready_at):.1f} s, less what others took")
            assert took_s(done, ready_at) <= SOON_S
        await eventually(lambda: told_alike(proof), within_s=3 * SOON_S, every_s=0.25)
        task = await proof.submit(PROMPT, max_tokens=8)
        end = await proof.ended(task)
        assert end["worker_name"] == "fast", (await proof.http.get(f"/explain/{task}")).json()["words"]
    finally:
        await proof.http.aclose()
