"""What one pass of the dispatcher costs, over the number of machines and the number of waiting tasks.

Prints and asserts no time. A pass waits for nothing, so its CPU time is what counts: other programs do not disturb that. It is
the router's own (``Desk.decide``, after a credit: everything that the shell runs before it publishes), in a full fleet: a task
ends, its worker is free, the next one is released to it, another one arrives.
``explained`` is the plan with a reason for every waiting task, which the pulse and the pages ask for.
``HEADRACE_BENCH_PROFILE=1`` prints where the time of the large passes went.
"""

from __future__ import annotations

import cProfile
import gc
import os
import pstats
import time
from collections.abc import Callable
from statistics import median, quantiles

import pytest

from support.crowds import Crowd

pytestmark = pytest.mark.bench

WORKERS, WAITING = (6, 25, 50, 100, 200), (200, 500, 1_000, 2_000)
SMALL, LARGE = (6, 200), (200, 2_000)
BUDGET_S = 3.0
"""For each size of the table: as many passes as fit, at least ten."""
PASSES_MAX = 400


def test_a_pass_by_size() -> None:
    rows = {size: passes(*size, least=100) for size in (SMALL, LARGE)}
    print(f"\na pass after a credit: {says(rows[SMALL])} with 6 workers and 200 tasks (target p99 10 ms)")
    print(f"                       {says(rows[LARGE])} with 200 workers and 2,000 tasks (target 100 ms)")
    print(
        f"{'workers':>9}{'waiting':>9}{'p50 ms':>9}{'p99 ms':>9}{'explained':>11}{'us a worker':>13}{'us a task':>11}"
    )
    sizes = [(workers, 500) for workers in WORKERS] + [(25, waiting) for waiting in WAITING]
    for size in dict.fromkeys([SMALL, *sizes, LARGE]):
        row = rows.get(size) or passes(*size)
        p50 = median(row["pass"])
        print(
            f"{size[0]:>9}{size[1]:>9}{ms(p50):>9}{ms(p99(row['pass'])):>9}{ms(median(row['explained'])):>11}"
            f"{p50 / size[0] * 1e6:>13.1f}{p50 / size[1] * 1e6:>11.1f}"
        )
    assert all(row["released"] for row in rows.values())


def passes(workers: int, waiting: int, *, least: int = 10) -> dict[str, list[float]]:
    """Seconds of passes that release something, and of plans with reasons."""
    gc.collect()
    gc.freeze()  # the collector looks through the router's own objects in a pass, but not through pytest's
    crowd = Crowd(workers, waiting)
    took: dict[str, list[float]] = {"pass": [], "explained": [], "released": []}
    profile = cProfile.Profile() if os.environ.get("HEADRACE_BENCH_PROFILE") else None
    until = time.perf_counter() + BUDGET_S
    while len(took["pass"]) < PASSES_MAX and (time.perf_counter() < until or len(took["pass"]) < least):
        crowd.free_one()
        if profile:
            profile.enable()
        began = time.thread_time()
        actions = crowd.decide()
        took["pass"].append(time.thread_time() - began)
        if profile:
            profile.disable()
        released = crowd.carry_out(actions)
        crowd.settle()
        for _ in range(released):
            crowd.arrive()
            took["released"].append(1.0)
        if len(took["explained"]) < 10:
            took["explained"].append(timed(crowd.desk.plan))
    if profile:
        print(f"\n{workers} workers, {waiting} waiting")
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    return took


def timed(call: Callable[[], object]) -> float:
    began = time.thread_time()
    call()
    return time.thread_time() - began


def says(row: dict[str, list[float]]) -> str:
    return f"p50 {ms(median(row['pass']))} ms, p99 {ms(p99(row['pass']))} ms ({len(row['pass'])} passes)"


def p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


def ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"
