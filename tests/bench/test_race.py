"""60 requests over three serial machines of 100, 300 and 900 ms: ours beside the policies that people use (case 1).

Prints and asserts no time. Every policy gets the same work on the same machines in the same run, after the same warm-up of ten
requests at the same concurrency; ours is a fresh fleet each time, which has learnt the speeds from those ten alone. The same
planner in virtual time stands beside it. A policy that has not come to an end after ``LIMIT_S`` is stopped there, and not tried
again once that decides its median. ``HEADRACE_BENCH_RUNS`` sets how often (5; the median counts).
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from statistics import median

import pytest
from bench.policies import POLICIES, Ask, Direct, Pull, closed_loop

from simulation.fleet.cases import ours
from simulation.fleet.instances import closed_loop as virtual
from support.eventually import eventually
from support.http_lines import Lines, Reply
from support.proving import Proof, measured
from support.stand_in_fleet import served, stand_in_fleet
from support.stand_ins import Machine, StandIns

pytestmark = pytest.mark.bench

RUNS = int(os.environ.get("HEADRACE_BENCH_RUNS", "5"))
REQUESTS, WARM_UP = 60, 10
LIMIT_S, NEVER = 12.0, float("inf")
PROMPT_TOKENS, OUTPUT_TOKENS = 20, 8
MACHINES = [
    Machine(name, decode=OUTPUT_TOKENS / (0.8 * seconds), prefill=PROMPT_TOKENS / (0.2 * seconds))
    for name, seconds in (("quick", 0.1), ("middling", 0.3), ("slow", 0.9))
]
IDEAL_S = REQUESTS / sum(1 / machine.seconds(PROMPT_TOKENS, OUTPUT_TOKENS) for machine in MACHINES)
TARGETS = {6: 4.8, 12: 4.6, 20: 4.6}
BODY = {
    "model": "stand-in",
    "max_tokens": OUTPUT_TOKENS,
    "messages": [{"role": "user", "content": "Why is the sky blue, and the sea? ".ljust(PROMPT_TOKENS * 4, ".")}],
}


async def send(lines: Lines) -> Reply:
    return await lines.post("/v1/chat/completions", BODY)


@pytest.mark.parametrize("clients", [6, 12, 20])
async def test_sixty_requests_over_three_machines(clients: int, tmp_path: Path) -> None:
    took: dict[str, list[float]] = {name: [] for name in ("ours", "pure pull", *POLICIES)}
    shares = ""
    for run in range(RUNS):
        folder = tmp_path / str(run)
        folder.mkdir()
        async with StandIns(folder, MACHINES) as urls:
            async with stand_in_fleet(folder, urls) as (proof, lines):
                took["ours"].append(await race(lambda _client: send(lines), clients, learnt=proof))
                shares = ", ".join(f"{name} {n}" for name, n in (await served(urls)).items())
            for name in ("pure pull", *POLICIES):
                if took[name].count(NEVER) > RUNS // 2:
                    continue
                machines = list(urls.values())
                policy = Pull(machines) if name == "pure pull" else Direct(POLICIES[name](random.Random(run)), machines)
                async with policy as direct:
                    took[name].append(await race(lambda client: direct.send(send, client), clients))
    print(
        f"\n{REQUESTS} requests, {clients} at once, machines of 100/300/900 ms; a warm-up of {WARM_UP} requests for each policy; "
        f"median of {RUNS}; ideal {IDEAL_S:.2f} s, target {TARGETS[clients]} s"
    )
    for name, values in took.items():
        values += [NEVER] * (RUNS - len(values))
        print(f"  {name:<16} {says(median(values)):>7}   ({', '.join(map(says, sorted(values)))})")
    print(
        f"  in virtual time  {says(in_virtual_time(clients)):>7}   (the same planner without processes, sockets and disks)"
    )
    print(f"  ours by machine, warm-up included: {shares}")


def in_virtual_time(clients: int) -> float:
    machines = [machine.seconds(PROMPT_TOKENS, OUTPUT_TOKENS) for machine in MACHINES]
    return ours(virtual(machines, 1, tasks=REQUESTS, concurrency=clients, warmup=WARM_UP)).makespan_s


async def race(ask: Ask, clients: int, *, learnt: Proof | None = None) -> float:
    await closed_loop(ask, requests=WARM_UP, clients=clients)
    if learnt is not None:
        await eventually(lambda: measured(learnt, WARM_UP), within_s=30)
        await learnt.quiet()
    return await closed_loop(ask, requests=REQUESTS, clients=clients, limit_s=LIMIT_S) or NEVER


def says(seconds: float) -> str:
    return f"> {LIMIT_S:g} s" if seconds == NEVER else f"{seconds:.2f} s"
