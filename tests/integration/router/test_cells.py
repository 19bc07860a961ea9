"""Statistics as a router gets them from a real projector: whole batches, and the truth where they are not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from schemas.events import TaskRouted
from schemas.subjects import STATS_BUCKET, stats_key
from services.router import cells
from services.router.service import RouterService
from services.router.verify import verify
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from support.eventually import eventually
from support.fleets import cell
from support.history import many
from support.projecting import ProjectorProcess, store_events
from support.routers import dispatching, question, running_router, with_workers
from support.stub_server import Pace, StubServer
from support.worker_bench import running_worker

LOG = list(many(400, tasks=80))


async def exact_up_to(router: RouterService, position: int) -> None:
    """Vouched for, and as far as the log's last sample."""
    await eventually(lambda: router.desk.cells.exact and router.desk.stats.position >= position)


def counted(router: RouterService) -> dict[str, int]:
    return {repr((c.model, c.domain, c.worker)): c.last_seq for c in router.statistics().cells()}


async def test_routers_early_late_and_restarted_hold_the_same_statistics_exactly(
    natsd: EmbeddedServer, bus: Bus, tmp_path: Path
) -> None:
    async with running_router(natsd.url, "early") as early, ProjectorProcess(natsd.url, tmp_path / "data") as projector:
        last = await store_events(bus, LOG)
        await projector.reached(bus, last)
        await eventually(lambda: len(early.desk.stats) > 0)
        samples = max(counted(early).values())
        await exact_up_to(early, samples)
        async with running_router(natsd.url, "late") as late:
            assert late.desk.cells.exact
            assert counted(late) == counted(early)
            assert late.desk.stats.position == early.desk.stats.position
            assert late.desk.stats.pools() == early.desk.stats.pools()


async def test_a_projector_that_is_killed_at_its_work_and_started_again_is_vouched_for_again(
    natsd: EmbeddedServer, bus: Bus, tmp_path: Path
) -> None:
    async with running_router(natsd.url) as router, ProjectorProcess(natsd.url, tmp_path / "data") as projector:
        for part in range(4):
            last = await store_events(bus, LOG[100 * part : 100 * part + 100])
            await eventually(lambda: len(router.desk.stats) + router.desk.cells.held > 0)
            projector.kill()
            projector.start()
        await projector.reached(bus, last)
        await exact_up_to(router, 1)
        status = await projector.status(bus)
        assert status is not None
        await eventually(lambda: len(router.desk.stats) == status["cells"] and router.desk.cells.exact)


async def test_cells_that_nobody_vouches_for_are_used_and_the_decisions_say_so(
    natsd: EmbeddedServer, bus: Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "PATIENCE_S", 0.2)
    async with (
        StubServer({"m": Pace()}) as stub,
        running_router(natsd.url) as router,
        running_worker(natsd.url, stub.url),
    ):
        await dispatching(router)
        await with_workers(router, 1, model="m")
        told = cell("m", "general", "w-bench", decode=44.0)
        await bus.kv_put(STATS_BUCKET, stats_key("m", "general", "w-bench"), msgspec.json.encode(told))
        await eventually(lambda: not router.desk.cells.exact and len(router.desk.stats) == 1)
        task = (await router.submit(question(model="m"))).task
        await eventually(
            lambda: router.desk.state.task(task)
        )  # until it is folded, it is looked for among the former ones
        found = await eventually(lambda: router.explain(task))
        assert found is not None

        async def decided() -> TaskRouted | None:
            explained = await router.explain(task)
            return explained[1] if explained is not None else None

        routed = await eventually(decided)
        assert routed is not None and not routed.exact
        [verdict, *_] = await verify(bus, (await router.explain(task))[2])  # type: ignore[index]
        assert verdict.same is None
        assert "only a part of the projector's last batch" in verdict.words
