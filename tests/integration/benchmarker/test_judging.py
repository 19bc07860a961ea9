"""Judges over real sockets: nats-server, router, worker, projector, and a model server whose judge has a habit, or has none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from schemas.bias import Records
from schemas.events import QualityJudged
from schemas.subjects import PROJECTOR_JUDGES
from services.benchmarker.asking import Asking
from services.benchmarker.debts import Debt
from services.benchmarker.panel import Panel, Seat
from services.benchmarker.shadow import Shadow
from services.runtime.bus import Bus
from services.runtime.clock import SystemClock
from services.runtime.ids import new_id
from services.runtime.server import EmbeddedServer
from support.eventually import PATIENCE_S
from support.habits import JUDGE, STRONG, VOICES, WEAK, models_with
from support.judges import Habit, always_first, always_longer, honest, texts_of
from support.projecting import ProjectorProcess
from support.ranking import ranking
from support.routers import dispatching, running_router, whole_log, with_workers
from support.shadowing import DOMAIN, suite_of
from support.worker_bench import WORKER, running_worker


async def judged(bus: Bus, projector: ProjectorProcess, pays: int) -> Records:
    """What the projector knows of the judges after so many payments for the weak model."""
    seats = tuple(Seat(model=name, worker=WORKER, digest=f"d{n}" * 32, resident=True) for n, name in enumerate(VOICES))
    debt = Debt(kind="quality", model=WEAK, worker=WORKER, domain=DOMAIN, reason="unjudged", gain=1.0)

    async def records() -> Records:
        await projector.reached(bus, await bus.last_seq("EVENTS"))
        return msgspec.json.decode(await bus.request(PROJECTOR_JUDGES, b"{}", timeout_s=PATIENCE_S), type=Records)

    async def say(event: Any) -> None:
        await bus.publish_event(event, event.id)

    shadow = Shadow(records, unix=SystemClock().unix, new_id=new_id, seed=lambda: 1, domains=suite_of(4))
    async with Asking(bus) as asking:
        for _ in range(pays):
            if not (await shadow.pay(debt, asking, Panel(seats=seats), say)).worked:
                break
    return await records()


@pytest.mark.parametrize(
    ("habit", "flags", "best"),
    [(honest, (), STRONG), (always_longer, ("length",), None), (always_first, ("position",), None)],
)
async def test_case_57_only_an_honest_judge_moves_the_ranking(
    natsd: EmbeddedServer, bus: Bus, tmp_path: Path, habit: Habit, flags: tuple[str, ...], best: str | None
) -> None:
    async with (
        running_router(natsd.url) as router,
        models_with(habit) as stub,
        running_worker(natsd.url, stub.url),
        ProjectorProcess(natsd.url, tmp_path) as projector,
    ):
        await dispatching(router)
        await with_workers(router, 1, WEAK)
        found = await judged(bus, projector, pays=20)
        assert (await router.judges()).judges == found.judges
        log = await whole_log(bus)
        asked = [body for body in stub.chats() if texts_of(body["messages"]) is not None]
    (record,) = [record for record in found.judges if record.model == JUDGE]
    words = [event for event in log if isinstance(event, QualityJudged)]
    assert all(body["format"]["properties"]["better"]["enum"] == ["first", "second", "tie"] for body in asked)
    assert all(body["options"]["temperature"] == 0.0 for body in asked)
    assert record.digest == "d2" * 32
    assert record.flags == flags
    if best is None:
        assert record.standing == "unsound"
        assert not words
        return
    assert record.standing == "sound"
    assert {event.weight for event in words} == {1.0}
    assert ranking(log, DOMAIN)[0] == best
