"""Two real llama.cpp machines, nothing known, nobody asks: the fleet finds out by itself, and the first task already profits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
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


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[DemoFleet]:
    async with DemoFleet(tmp_path, sync="10s", restart=False, benchmarker=True) as started:
        yield started


async def levels(proof: Proof) -> dict[str, tuple[str, str]]:
    """Machine -> where its (decode, prefill) speed for a general question comes from."""
    body = (await proof.http.get("/route/preview", params={"prompt": PROMPT})).json()
    found: list[Json] = body["candidates"]
    return {row["worker_name"]: (row["decode"]["level"], row["prefill"]["level"]) for row in found}


async def test_both_machines_are_measured_before_anybody_asks_and_the_first_task_goes_to_the_fast_one(
    fleet: DemoFleet,
) -> None:
    proof = Proof(fleet.stack)
    loop = asyncio.get_running_loop()
    try:
        ready = loop.time()
        whole = dict.fromkeys(fleet.machines, ("cell", "cell"))

        async def is_known() -> bool:
            return await levels(proof) == whole

        await eventually(is_known, within_s=SOON_S, every_s=0.25)
        print(f"\nboth machines at level cell {loop.time() - ready:.1f} s after everything was ready")
        async with await Bus.connect(fleet.nats_url, name="test") as bus:
            log = await whole_log(bus)
            asked = [e for e in log if isinstance(e, TaskSubmitted)]
            assert {(e.client, e.kind, e.bench.purpose if e.bench else None) for e in asked} == {
                ("benchmarker", "bench", "probe")
            }
            done = [e for e in log if isinstance(e, TaskCompleted)]
            assert len(done) == len(asked) == len(fleet.machines)  # one execution each, and one sample
            assert all(e.tokens.output == 64 and e.lane == e.worker for e in done)
        end = await proof.ended(await proof.submit(PROMPT, max_tokens=8))
        assert end["worker_name"] == "fast"
    finally:
        await proof.http.aclose()
