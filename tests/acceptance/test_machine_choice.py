"""Two real llama.cpp machines of different speed: work goes where it is done sooner, and the speeds are the servers' own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import pytest
import pytest_asyncio
from msgspec.structs import replace

from schemas.events import TaskCompleted
from schemas.statistics import fold, sample_of
from services.cli.demo_model import missing_parts
from services.cli.fleet_process import DemoFleet
from support.eventually import eventually
from support.proving import Json, Proof, llama_fleet
from support.told_fleets import known

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(bool(missing_parts()), reason=f"not installed: {[part.package for part in missing_parts()]}"),
]
Fleet = tuple[Proof, DemoFleet]
Figures = dict[str, tuple[float, float]]
EACH = 10
TOKENS = "llamacpp:tokens_predicted_total"
SECONDS = "llamacpp:tokens_predicted_seconds_total"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    folder: Path = tmp_path_factory.mktemp("fleet")
    async with llama_fleet(folder) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def fleet(whole: Fleet) -> Fleet:
    """With nothing to do."""
    await whole[0].quiet()
    return whole


async def own_figures(demo: DemoFleet) -> Figures:
    """Machine -> (tokens, seconds) of all that its llama.cpp ever decoded, by its own ``/metrics``."""
    found = {}
    async with httpx.AsyncClient(trust_env=False) as http:
        for name, machine in demo.machines.items():
            lines = (await http.get(f"{machine.llama.url}/metrics")).text.splitlines()
            values = dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))
            found[name] = (float(values[TOKENS]), float(values[SECONDS]))
    return found


def rates(before: Figures, after: Figures) -> dict[str, float]:
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
    """Each fact has what its server's counters rose by meanwhile, and ``/stats`` has what facts of these counters come to.
    How much else this machine had to do changes both alike."""
    proof, demo = fleet
    readings, tasks = [await own_figures(demo)], []
    for n in range(EACH):
        prompt, last = f"Write a story about the number {n}.", readings[-1]
        asked = {name: await proof.submit(prompt, max_tokens=16, domain="sums", worker=name) for name in demo.machines}
        await proof.all_ended(asked.values())
        readings.append(await eventually(lambda last=last: risen(demo, last)))  # type: ignore[misc]
        tasks.append(asked)
    await known(proof)
    rows = (await proof.http.get("/stats", params={"domain": "sums"})).json()["rows"]
    done: dict[str, Any] = {e.event.task: e for e in await proof.log() if isinstance(e.event, TaskCompleted)}
    for name in demo.machines:
        facts = [done[asked[name]] for asked in tasks]
        own = [
            with_figures(fact, after[name][0] - before[name][0], after[name][1] - before[name][1])
            for fact, (before, after) in zip(facts, pairwise(readings), strict=True)
        ]
        told, its_own = ([(e.event.tokens.output, e.event.times.decode_s) for e in log] for log in (facts, own))
        assert [tokens for tokens, _ in told] == [tokens for tokens, _ in its_own]
        assert [seconds for _, seconds in told] == pytest.approx([seconds for _, seconds in its_own], rel=0.05)
        rate = fold(filter(None, (sample_of(e.event, e.seq, e.at_us) for e in own))).decode
        row = next(row for row in rows if row["worker_name"] == name)["fields"]["decode"]
        expected = rate.wtok / rate.wus * 1e6
        print(f"\n{name}: {row['value']:.2f} tokens/s in /stats, {expected:.2f} by its server, from {row['n']} answers")
        assert (row["n"], row["value"]) == (rate.n, pytest.approx(expected, rel=0.05))


async def risen(demo: DemoFleet, last: Figures) -> Figures | None:
    """The servers' figures once each has counted another answer."""
    now = await own_figures(demo)
    return now if all(now[name] > last[name] for name in now) else None


def with_figures(fact: Any, tokens: float, seconds: float) -> Any:
    """The stored fact, had it been told so."""
    figures = {
        "tokens": replace(fact.event.tokens, output=round(tokens)),
        "times": replace(fact.event.times, decode_s=seconds),
    }
    return fact._replace(event=replace(fact.event, **figures))
