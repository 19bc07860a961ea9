"""The benchmarker's payer of quality debts on real parts: records from the projector, the users' own prompts from TASKS."""

from __future__ import annotations

from pathlib import Path

from schemas.events import QualityJudged, TaskSubmitted, WorkerLoad, WorkerReported
from services.benchmarker.asking import Asking
from services.benchmarker.debts import Debt
from services.benchmarker.ground import Ground
from services.benchmarker.quality import OWN, Judging
from services.runtime.bus import Bus
from services.runtime.clock import SystemClock
from services.runtime.server import EmbeddedServer
from services.runtime.settings import Benchmarker as Settings
from support.habits import JUDGE, STRONG, VOICES, WEAK, models_with
from support.judges import honest
from support.projecting import ProjectorProcess
from support.routers import dispatching, end_of, question, running_router, whole_log, with_workers
from support.worker_bench import WORKER, running_worker

DOMAIN = "cooking"


async def fold(ground: Ground, bus: Bus) -> None:
    """What the service's feeds and heartbeats would have told by now: an idle machine that nobody else uses."""
    clock = ground.clock
    ground.ahead_us = int(clock.unix() * 1e6) - int(clock.monotonic() * 1e6)
    log = await whole_log(bus)
    for seq, event in enumerate(log, 1):
        ground.fleet.apply(event, seq, ground.now_us())
    boot = next(event.boot for event in reversed(log) if isinstance(event, WorkerReported))
    load = WorkerLoad(
        id="h", at=0.0, by=WORKER, worker=WORKER, boot=boot, seq=1, uptime_s=9.0, others_use=0.0, backend_up=True,
        resident=tuple(VOICES),
    )  # fmt: skip
    ground.fleet.hear(load, ground.now_us())


async def test_a_debt_is_paid_with_what_users_asked_and_got(natsd: EmbeddedServer, bus: Bus, tmp_path: Path) -> None:
    settings = Settings(own_prompts=True, idle_s=0.0, budget=1.0)
    async with (
        running_router(natsd.url) as router,
        models_with(honest) as stub,
        running_worker(natsd.url, stub.url),
        ProjectorProcess(natsd.url, tmp_path) as projector,
        Asking(bus) as asking,
    ):
        await dispatching(router)
        await with_workers(router, 1, WEAK)
        real = await router.submit(question("How long do eggs boil?", model=WEAK, domain=DOMAIN))
        await end_of(router, real.task)
        ground = Ground(bus, asking, SystemClock(), settings)
        judging = Judging(ground)
        debt = Debt(kind="quality", model=WEAK, worker=WORKER, domain=DOMAIN, reason="unjudged", gain=1.0)
        for _ in range(14):
            await fold(ground, bus)
            await projector.reached(bus, await bus.last_seq("EVENTS"))
            await judging.pay(debt, asking)
        log = await whole_log(bus)
    a, b = (event for event in log if isinstance(event, QualityJudged) and event.source == "judge")
    assert (a.model, a.value, a.weight, a.judge, a.suite, a.prompt) == (WEAK, 0.0, 1.0, JUDGE, OWN, real.task)
    assert (b.model, b.value) == (STRONG, 1.0)
    assert a.tasks[0] == real.task
    shadows = [e for e in log if isinstance(e, TaskSubmitted) and e.bench is not None and e.bench.purpose == "shadow"]
    assert [event.wants.model for event in shadows] == [STRONG]  # the user's own answer was there already
    assert all(event.urgency == "background" and event.client == "benchmarker" for event in shadows)
