"""What unasked measurements cost real work, at the most: a busy fleet whose benchmarker wants to measure all the time.

Prints figures; asserts that no real task ever waited behind more than one probe, and that none was lost. Three machines at about
half of their capacity answer the same seeded load twice, without and with a benchmarker for which every measurement is stale at
once, any machine idle after 50 ms, and no budget too small. ``HEADRACE_BENCH_SECONDS`` sets the length of each run.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import mean, quantiles
from typing import NamedTuple

import pytest

from schemas.events import AttemptFailed, TaskCompleted, TaskReleased, TaskStarted, TaskSubmitted
from services.cli.parts import BackendAt, Surroundings, worker_part
from services.cli.stack import Stack
from support.benchmarking import benchmarking
from support.history import Entry
from support.loads import until
from support.proving import Proof
from support.stand_ins import Machine, StandIns
from support.told_fleets import say_use

pytestmark = pytest.mark.bench

SECONDS = float(os.environ.get("HEADRACE_BENCH_SECONDS", "30"))
MODELS = ("m0", "m1")
MACHINES = tuple(
    Machine(name, decode, prefill=4000.0, models=MODELS)
    for name, decode in (("desk", 120.0), ("mini", 80.0), ("laptop", 40.0))
)
TOKENS = 32
LOAD = 0.5
PROBE_TOKENS = 64
EAGER = {"idle_s": 0.05, "budget": 1.0, "stale_days": 1e-9, "probe_tokens": PROBE_TOKENS}


class Run(NamedTuple):
    """A bench attempt, or a real task from its submission to its start; server times in seconds."""

    worker: str
    since_s: float
    until_s: float


async def test_real_work_beside_a_benchmarker_that_never_has_enough(tmp_path: Path) -> None:
    took: dict[bool, list[float]] = {}
    for eager in (False, True):
        folder = tmp_path / str(eager)
        folder.mkdir()
        async with AsyncExitStack() as running:
            urls = await running.enter_async_context(StandIns(folder, MACHINES))
            proof = await running.enter_async_context(hosts(folder, urls))
            await warm(proof)
            if eager:
                nats = proof.stack.nats_url
                await running.enter_async_context(benchmarking(nats, rest_s=0.0, look_s=0.05, **EAGER))
            tasks = await load(proof, random.Random(1))
            took[eager] = [float(end["status"]["waited_s"] or 0.0) for end in await proof.all_ended(tasks)]
            log = await proof.log()
        waits, benches = real_waits(log, set(tasks)), bench_runs(log)
        if eager:
            assert benches
            report(waits, benches)
        assert len(waits) == len(tasks)
        assert max(len(behind(wait, benches)) for wait in waits) <= 1
    for eager, values in took.items():
        print(f"  waits {'with' if eager else 'without'} it: mean {mean(values):.3f} s, p95 {p95(values):.3f} s")


@asynccontextmanager
async def hosts(folder: Path, urls: Mapping[str, str]) -> AsyncIterator[Proof]:
    """A fleet in which each machine is a host of its own, that nobody else uses: on one host they would all have to be idle."""
    async with AsyncExitStack() as running:
        stack = await running.enter_async_context(Stack(folder / "data", sync="10s", restart=False))
        around = Surroundings(folder / "data", stack.nats_url, stack.router_url)
        parts = []
        for name, url in urls.items():
            told = {
                "OTHERS_USE": str(say_use(folder, name, 0.0)),
                "TOLD_HOST": name,
                "PYTHONPATH": str(Path(__file__).parents[1]),
            }
            part = worker_part(around, BackendAt(name, url, name))
            environment = {**part.environment, **told}
            parts.append(dataclasses.replace(part, module="support.told_load", environment=environment))
        await stack.supervisor.start(parts)
        proof = Proof(stack)
        running.push_async_callback(proof.http.aclose)
        await proof.quiet()
        yield proof


async def warm(proof: Proof) -> None:
    """Each model on each machine was asked once, so that both runs decide by the same knowledge."""
    for model in MODELS:
        tasks = [await proof.submit(max_tokens=TOKENS, model=model, worker=m.name) for m in MACHINES]
        await proof.all_ended(tasks)


async def load(proof: Proof, rng: random.Random) -> list[str]:
    """Open load: exponential gaps, at ``LOAD`` of what the machines can do together."""
    rate = LOAD * sum(machine.decode for machine in MACHINES) / TOKENS
    due, loop = 0.0, asyncio.get_running_loop()
    start, sent = loop.time(), list[asyncio.Task[str]]()
    while (due := due + rng.expovariate(rate)) < SECONDS:
        await until(start + due - loop.time())
        model = rng.choice(MODELS)
        sent.append(asyncio.create_task(proof.submit(f"Tell me of {rng.random()}", max_tokens=TOKENS, model=model)))
    return list(await asyncio.gather(*sent))


def real_waits(log: Sequence[Entry], tasks: set[str]) -> list[Run]:
    submitted = {e.event.task: e.at_us for e in log if isinstance(e.event, TaskSubmitted) and e.event.task in tasks}
    return [
        Run(e.event.worker, submitted[e.event.task] / 1e6, e.at_us / 1e6)
        for e in log
        if isinstance(e.event, TaskStarted) and e.event.task in submitted
    ]


def bench_runs(log: Sequence[Entry]) -> list[Run]:
    """Each bench attempt from its release to the end that its worker told: until then its slot is taken."""
    kinds = {e.event.task for e in log if isinstance(e.event, TaskSubmitted) and e.event.kind == "bench"}
    open_: dict[str, tuple[str, float]] = {}
    found = []
    for entry in log:
        event = entry.event
        if isinstance(event, TaskReleased) and event.task in kinds:
            open_[event.task] = (event.expected_worker or "", entry.at_us / 1e6)
        elif isinstance(event, AttemptFailed | TaskCompleted) and event.task in open_:
            worker, since_s = open_.pop(event.task)
            found.append(Run(worker, since_s, entry.at_us / 1e6))
    return found


def behind(wait: Run, benches: Sequence[Run]) -> list[float]:
    """How long the task waited for each bench attempt that was in its machine's way."""
    return [
        min(wait.until_s, bench.until_s) - max(wait.since_s, bench.since_s)
        for bench in benches
        if bench.worker == wait.worker and bench.since_s < wait.until_s and bench.until_s > wait.since_s
    ]


def report(waits: Sequence[Run], benches: Sequence[Run]) -> None:
    delays = [sum(found) for wait in waits if (found := behind(wait, benches))]
    longest = max(PROBE_TOKENS / machine.decode for machine in MACHINES)
    lengths = [bench.until_s - bench.since_s for bench in benches]
    print(
        f"\n{len(waits)} real tasks and {len(benches)} probes in {SECONDS:g} s: {len(delays)} tasks met a probe on their "
        f"machine and waited {mean(delays) if delays else 0.0:.3f} s for it in the mean, {max(delays, default=0.0):.3f} s at the "
        f"most; a whole probe takes up to {longest:.2f} s, these ran {mean(lengths) if lengths else 0.0:.3f} s in the mean"
    )


def p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20)[18]
