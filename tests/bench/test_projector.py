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
        status = await projector.reached(bus, last, within_s=300, every_s=0.25)
        wall_s = time.monotonic() - started
        times = psutil.Process(projector.pid).cpu_times()
        cpu_s = times.user + times.system
        whole_s = cpu_s + times.children_user + times.children_system
    print(
        f"\nprojector, {log.__name__}: {last:,} events -> {status['samples']:,} samples, {status['cells']} cells, "
        f"{status['dead']} dead: {last / cpu_s:,.0f} events per CPU-second "
        f"({cpu_s:.1f} s, {whole_s:.1f} s with its start and snapshots' copies), {last / wall_s:,.0f} events/s"
    )
    assert status["position"] == last
    assert status["dead"] == 0
