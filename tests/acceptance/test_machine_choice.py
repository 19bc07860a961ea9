"""Two real llama.cpp machines of different speed: work goes where it is done sooner, and the speeds are the servers' own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from statistics import median

import httpx
import pytest

from services.cli.demo_model import missing_parts
from services.cli.fleet_process import DemoFleet
from support.eventually import eventually
from support.proving import Json, Proof, llama_fleet, measured

pytestmark = pytest.mark.skipif(
    bool(missing_parts()), reason=f"not installed: {[part.package for part in missing_parts()]}"
)
Fleet = tuple[Proof, DemoFleet]
TOKENS = "llamacpp:tokens_predicted_total"
SECONDS = "llamacpp:tokens_predicted_seconds_total"


@pytest.fixture
async def fleet(tmp_path: Path) -> AsyncIterator[Fleet]:
    async with llama_fleet(tmp_path) as started:
        yield started


async def own_figures(demo: DemoFleet) -> dict[str, tuple[float, float]]:
    """Machine -> (tokens, seconds) of all that its llama.cpp ever decoded, by its own ``/metrics``."""
    found = {}
    async with httpx.AsyncClient(trust_env=False) as http:
        for name, machine in demo.machines.items():
            lines = (await http.get(f"{machine.llama.url}/metrics")).text.splitlines()
            values = dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))
            found[name] = (float(values[TOKENS]), float(values[SECONDS]))
    return found


def rates(before: dict[str, tuple[float, float]], after: dict[str, tuple[float, float]]) -> dict[str, float]:
    return {name: (after[name][0] - before[name][0]) / (after[name][1] - before[name][1]) for name in after}


def share_of(ends: list[Json], machine: str) -> float:
    return sum(bool(end["worker_name"] == machine) for end in ends) / len(ends)


async def test_of_sequential_tasks_nine_in_ten_run_on_the_fast_machine(fleet: Fleet) -> None:
    proof, _ = fleet
    ends = [await proof.ended(await proof.submit(f"Count to {n}.", max_tokens=8)) for n in range(30)]
    share = share_of(ends, "fast")
    print(f"\nsequential: {share:.0%} of {len(ends)} tasks ran on the fast machine")
    assert share >= 0.9


async def test_in_a_burst_the_fast_machine_takes_its_share(fleet: Fleet, scale: Callable[[int, int], int]) -> None:
    """Its share is its part of both decode rates, by the servers' own figures in the same burst."""
    proof, demo = fleet
    taken, shares = [], []
    for burst in range(scale(3, 5)):
        await proof.quiet()
        before = await own_figures(demo)
        tasks = [await proof.submit(f"Tell me about the number {20 * burst + n}.", max_tokens=24) for n in range(20)]
        taken.append(share_of(await proof.all_ended(tasks), "fast"))
        rate = rates(before, await own_figures(demo))
        shares.append(taken[-1] / (rate["fast"] / sum(rate.values())))
    print(f"\nbursts of 20: the fast machine took {taken}, of its proportional share {[round(s, 2) for s in shares]}")
    assert median(shares) >= 0.85


async def test_decode_rates_are_the_servers_own(fleet: Fleet) -> None:
    """The servers' totals are read after each task, so that they can be weighted as ours are: by half per 20 younger tasks."""
    proof, demo = fleet
    readings, each = [await own_figures(demo)], 20
    for n in range(each):
        prompt = f"Write a story about the number {n}."
        tasks = [await proof.submit(prompt, max_tokens=16, domain="sums", worker=name) for name in demo.machines]
        await proof.all_ended(tasks)
        readings.append(await own_figures(demo))
    await eventually(lambda: measured(proof, 2 + 2 * each))
    rows = (await proof.http.get("/stats", params={"domain": "sums"})).json()["rows"]
    ours = {row["worker_name"]: row["fields"]["decode"] for row in rows}
    plain = rates(readings[0], readings[-1])
    for name in demo.machines:
        parts = [(b[name][0] - a[name][0], b[name][1] - a[name][1]) for a, b in pairwise(readings)]
        weights = [0.5 ** ((each - 1 - n) / 20) for n in range(each)]
        own = sum(w * tokens for w, (tokens, _) in zip(weights, parts, strict=True)) / sum(
            w * seconds for w, (_, seconds) in zip(weights, parts, strict=True)
        )
        value = ours[name]["value"]
        print(f"\n{name}: {value:.2f} tokens/s in /stats, {own:.2f} by its server ({plain[name]:.2f} without weights)")
        assert ours[name]["n"] == each
        assert value == pytest.approx(own, rel=0.05)
