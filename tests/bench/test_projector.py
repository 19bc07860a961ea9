"""How many events the real projector process folds per second of CPU, from JetStream to ``samples``.

Prints and asserts no figure. ``HEADRACE_BENCH_EVENTS`` sets the size (1,000,000). Two logs: whole lives of tasks with their
decisions (every table is written), and the log of finished executions and judgements that the target of 80,000 is about.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import psutil
import pytest

from schemas.events import QualityJudged, TaskCompleted
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from support.eventually import eventually
from support.history import Raw, many
from support.projecting import ProjectorProcess, store_events

pytestmark = pytest.mark.bench

EVENTS = int(os.environ.get("HEADRACE_BENCH_EVENTS", "1000000"))
SAMPLES = tuple(f"ev.{kind.__struct_config__.tag}." for kind in (TaskCompleted, QualityJudged))


def lives() -> Iterator[Raw]:
    return many(EVENTS)


def executions() -> Iterator[Raw]:
    """The completions and judgements of the same lives only."""
    return islice((raw for raw in many(1 << 40) if raw.subject.startswith(SAMPLES)), EVENTS)


@pytest.mark.parametrize("log", [lives, executions], ids=["lives", "executions"])
async def test_events_per_cpu_second(
    log: Callable[[], Iterator[Raw]], natsd: EmbeddedServer, bus: Bus, tmp_path: Path
) -> None:
    last = await store_events(bus, log())
    async with ProjectorProcess(natsd.url, tmp_path / "data") as projector:
        started = time.monotonic()
        await projector.reached(bus, last, within_s=300, every_s=0.1)
        wall_s, samples_s = time.monotonic() - started, _cpu_s(projector.pid)

        async def cells() -> bool:
            status = await projector.status(bus)
            return status is not None and status["cells"] > 0

        await eventually(cells, within_s=60, every_s=0.1)
        status, cells_s = await projector.reached(bus, last), _cpu_s(projector.pid)
    print(
        f"\nprojector, {log.__name__}: {last:,} events -> {status['samples']:,} samples: "
        f"{last / samples_s:,.0f} events per CPU-second ({samples_s:.1f} s, its start included), {last / wall_s:,.0f} events/s; "
        f"{last / cells_s:,.0f} with all of {status['cells']} cells recomputed"
    )
    assert (status["position"], status["dead"]) == (last, 0)


def _cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system + times.children_user + times.children_system
