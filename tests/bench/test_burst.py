"""A burst of 20 tasks on two machines 7.3 times apart, beside the policies that people use; and a route of target weights.

Prints and asserts no time. Speeds are 730 and 100 tokens a second (73 and 10, ten times faster, so that it takes seconds).
Lengths differ and nobody is told them: the prompt asks for so many words, and the stand-in counts. The best possible
assignment, in any order and with all lengths known, is computed and printed beside them. What weights of 95 and 5 do is
counted, and held to ± 2 points.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median

import pytest
from bench.policies import POLICIES, Direct, Pull, closed_loop

from support.eventually import eventually
from support.http_lines import Lines, Reply
from support.proving import measured
from support.stand_in_fleet import served, stand_in_fleet
from support.stand_ins import Machine, StandIns

pytestmark = pytest.mark.bench

RUNS = int(os.environ.get("HEADRACE_BENCH_RUNS", "5"))
TASKS, WARM_UP = 20, 10
WORDS_MEAN, WORDS_SIGMA = 110.0, 0.5
FAST, SLOW = Machine("fast", decode=730.0, prefill=25_000.0), Machine("slow", decode=100.0, prefill=2_500.0)
REQUESTS, WEIGHTS = 1_000, {"large": 95, "small": 5}
ROUTES = """
[canary]
targets = [{ model = "large", weight = 95 }, { model = "small", weight = 5 }]
"""

Send = Callable[[Lines], Awaitable[Reply]]


async def test_a_burst_on_two_machines(tmp_path: Path) -> None:
    took: dict[str, list[float]] = {name: [] for name in ("best possible", "ours", "pure pull", *POLICIES)}
    for run in range(RUNS):
        rng, folder = random.Random(run), tmp_path / str(run)
        folder.mkdir()
        warm_up, burst = lengths(rng, WARM_UP), lengths(rng, TASKS)
        took["best possible"].append(best_possible(burst))
        async with StandIns(folder, [FAST, SLOW]) as urls:
            async with stand_in_fleet(folder, urls) as (proof, lines):
                await all_at_once(lambda send: send(lines), warm_up)
                await eventually(lambda: measured(proof, WARM_UP), within_s=30)
                await proof.quiet()
                took["ours"].append(await all_at_once(lambda send: send(lines), burst))
            for name in ("pure pull", *POLICIES):
                took[name].append(await directly(name, list(urls.values()), warm_up, burst, run))
    best = took["best possible"]
    print(
        f"\n{TASKS} tasks at once on machines of 730 and 100 tokens/s, after a warm-up of {WARM_UP}; {RUNS} runs, medians"
    )
    for name, values in took.items():
        ratio = median(value / bound for value, bound in zip(values, best, strict=True))
        print(f"  {name:<16} {median(values):6.2f} s   {ratio:5.2f} times the best possible")


async def test_target_weights(tmp_path: Path) -> None:
    machines = [Machine(name, decode=1_000.0, slots=8, models=(name,)) for name in WEIGHTS]
    async with StandIns(tmp_path, machines) as urls, stand_in_fleet(tmp_path, urls, slots=8, routes=ROUTES) as fleet:
        _, lines = fleet
        await closed_loop(lambda _client: ask("canary", 4)(lines), requests=REQUESTS, clients=16)
        shares = {name: 100 * count / REQUESTS for name, count in (await served(urls)).items()}
    print(
        f"\n{REQUESTS} requests by target weights {WEIGHTS}: " + ", ".join(f"{n} {s:.1f} %" for n, s in shares.items())
    )
    assert all(abs(shares[name] - weight) <= 2 for name, weight in WEIGHTS.items()), shares


def lengths(rng: random.Random, count: int) -> list[int]:
    return [max(8, round(WORDS_MEAN * rng.lognormvariate(-(WORDS_SIGMA**2) / 2, WORDS_SIGMA))) for _ in range(count)]


def ask(model: str, words: int) -> Send:
    message = {"role": "user", "content": f"Why is the sky blue, in {words} words?"}
    body = {"model": model, "max_tokens": 2_000, "messages": [message]}
    return lambda lines: lines.post("/v1/chat/completions", body)


async def all_at_once(through: Callable[[Send], Awaitable[Reply]], words: Sequence[int]) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    replies = await asyncio.gather(*(through(ask("stand-in", count)) for count in words))
    assert {reply.status for reply in replies} == {200}
    return loop.time() - began


async def directly(name: str, urls: list[str], warm_up: list[int], burst: list[int], run: int) -> float:
    """By one of the policies, which queue inside the machines; the pull keeps the queue itself."""
    policy = Pull(urls) if name == "pure pull" else Direct(POLICIES[name](random.Random(run)), urls)
    async with policy as direct:
        await all_at_once(lambda send: direct.send(send, 0), warm_up)
        numbers = iter(range(TASKS))
        return await all_at_once(lambda send: direct.send(send, next(numbers)), burst)


def best_possible(words: Sequence[int]) -> float:
    """Over all assignments: which sums of work the fast machine can have, and how long the slower end then takes."""
    on_fast = {0}
    for count in words:
        on_fast |= {done + count for done in on_fast}
    total = sum(words)
    return min(max(done / FAST.decode, (total - done) / SLOW.decode) for done in on_fast)
