"""The whole benchmarker finds out by itself which model is better: real tasks are all that it gets, and ``/stats`` follows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from schemas.events import AnyEvent, QualityJudged, TaskCompleted, TaskSubmitted
from services.router.http.app import create_app
from services.router.service import RouterService
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from services.worker.telemetry.sample import Telemetry
from support.benchmarking import benchmarking
from support.eventually import eventually
from support.habits import models_with
from support.judges import GOOD, honest
from support.projecting import ProjectorProcess
from support.routers import dispatching, end_of, question, running_router, whole_log, with_workers
from support.worker_bench import running_worker

DOMAIN, LEAST = "writing", 3
WEAK, MIDDLE, STRONG = "llama3.2:1b", "phi4:14b", "qwen3:8b"
ANSWERS = {WEAK: "This is long, and nothing else. " * 3, MIDDLE: f"Rather {GOOD}.", STRONG: f"{GOOD}, very {GOOD}."}
MACHINES = ("w1", "w2", "w3")


@pytest.fixture
async def router(natsd: EmbeddedServer, tmp_path: Path) -> AsyncIterator[RouterService]:
    """Three machines, each with all three models in memory, that nobody else uses; each model is an honest judge."""
    pressure = tmp_path / "machine/proc/pressure"
    pressure.mkdir(parents=True)
    (pressure / "cpu").write_text("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
    async with AsyncExitStack() as running:
        service = await running.enter_async_context(running_router(natsd.url))
        await dispatching(service)
        for worker in MACHINES:
            stub = await running.enter_async_context(models_with(honest, ANSWERS, tuple(ANSWERS)))
            telemetry = Telemetry(root=tmp_path / "machine")
            await running.enter_async_context(running_worker(natsd.url, stub.url, worker=worker, telemetry=telemetry))
        await with_workers(service, len(MACHINES), WEAK)
        yield service


async def use(router: RouterService, each: int) -> None:
    """Somebody asks each model for so many texts."""
    for number in range(each):
        for model in ANSWERS:
            asked = await router.submit(question(f"Write verse {number}.", model=model, domain=DOMAIN))
            assert (await end_of(router, asked.task)).status.state == "completed"


def verdicts(log: Sequence[AnyEvent]) -> dict[str, list[QualityJudged]]:
    """By model, those that count."""
    found: dict[str, list[QualityJudged]] = defaultdict(list)
    for event in log:
        if isinstance(event, QualityJudged) and event.source == "judge" and event.weight > 0:
            found[event.model].append(event)
    return found


def shadows_and_real(log: Sequence[AnyEvent]) -> list[tuple[int, int, int]]:
    """(pairs judged, answers asked for, real tasks done) after each event."""
    counts: Counter[str] = Counter()
    found, pairs = [], set[str | None]()
    for event in log:
        if isinstance(event, TaskSubmitted) and event.bench is not None and event.bench.purpose == "shadow":
            counts["answers"] += 1
        elif isinstance(event, TaskCompleted) and event.kind != "bench":
            counts["real"] += 1
        elif isinstance(event, QualityJudged):
            pairs.add(event.pair)
        found.append((len(pairs), counts["answers"], counts["real"]))
    return found


async def test_models_that_people_use_are_judged_by_each_other_until_the_ranking_stands_at_the_pace_of_their_use(
    natsd: EmbeddedServer, router: RouterService, bus: Bus, tmp_path: Path
) -> None:
    async with ProjectorProcess(natsd.url, tmp_path) as projector:
        async with benchmarking(natsd.url, rest_s=0.1, look_s=0.05, free=True) as benchmarker:
            await use(router, 4)

            def waits_for_use() -> bool:
                return any("for every four real tasks" in why for why in benchmarker.held.values())

            await eventually(waits_for_use, within_s=120)
            await use(router, 20)

            async def is_judged() -> bool:
                found = verdicts(await whole_log(bus))
                return set(found) == set(ANSWERS) and all(len(words) >= LEAST for words in found.values())

            await eventually(is_judged, within_s=180, every_s=0.5)
        log = await whole_log(bus)
        await projector.reached(bus, len(log))
        for pairs, answers, real in shadows_and_real(log):
            assert 4 * pairs <= real
            assert 4 * (answers - 1) <= real  # a pair's two answers are begun together
        for words in verdicts(log).values():
            assert len({word.prompt for word in words[:LEAST]}) == LEAST, "the first verdicts rest on different answers"
        transport = httpx.ASGITransport(app=create_app(router))
        async with httpx.AsyncClient(transport=transport, base_url="http://router") as http:

            async def follows() -> bool:
                rows = (await http.get("/stats", params={"domain": DOMAIN})).json()["rows"]
                found = {row["model"]: row["expected"]["quality"]["value"] for row in rows}
                assert found[STRONG] > found[MIDDLE] > found[WEAK], found
                return True

            await eventually(follows)
