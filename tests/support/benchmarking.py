"""A benchmarker in this process on a real nats-server, with little patience."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from schemas.events import AnyEvent, TaskCancelled, TaskCompleted, TaskSubmitted
from services.benchmarker.asking import Asking
from services.benchmarker.ground import Ground
from services.benchmarker.plugs import cost_of, payers
from services.benchmarker.service import Benchmarker
from services.runtime.bus import Bus
from services.runtime.clock import SystemClock
from services.runtime.ids import new_id
from services.runtime.lifecycle import Lifecycle
from services.runtime.settings import Benchmarker as BenchmarkerSettings
from support.eventually import PATIENCE_S
from support.routers import whole_log


@asynccontextmanager
async def benchmarking(
    url: str, who: str = "b1", *, rest_s: float = 30.0, look_s: float = 0.2, free: bool = False, **settings: Any
) -> AsyncIterator[Benchmarker]:
    """It has asked its last question when this ends. ``free``: nothing is taken to cost any of a machine's budget."""
    async with await Bus.connect(url, name="benchmarker") as bus:
        given = BenchmarkerSettings(**{"idle_s": 0.3, "probe_tokens": 8} | settings)
        ground = Ground(bus, Asking(bus), SystemClock(), given)
        cost = (lambda _debt: 0.0) if free else cost_of(ground)
        service = Benchmarker(
            ground, who, payers=payers(ground, new_id), answers={}, cost=cost, rest_s=rest_s, look_s=look_s
        )
        life = Lifecycle()
        running = asyncio.create_task(service.run(life))
        try:
            yield service
        finally:
            life.drain("the test is over")
            async with asyncio.timeout(PATIENCE_S):
                await running


async def probes(bus: Bus) -> list[tuple[str, str, str, str]]:
    """(worker, model, reason, how it ended) of each probe so far, in order; an end that is not there yet is ``open``."""
    log = await whole_log(bus)
    ends = {event.task: _word(event) for event in log if isinstance(event, TaskCompleted | TaskCancelled)}
    return [
        (e.wants.worker or "", e.wants.model or "", e.bench.reason, ends.get(e.task, "open"))
        for e in log
        if isinstance(e, TaskSubmitted) and e.bench is not None and e.bench.purpose == "probe"
    ]


def _word(event: AnyEvent) -> str:
    return event.reason if isinstance(event, TaskCancelled) else "completed"
