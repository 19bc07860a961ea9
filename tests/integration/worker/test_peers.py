"""Two workers that see each other: names, digests, priorities."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from structlog.testing import capture_logs

from schemas.events import TaskCompleted, WorkerReported
from schemas.subjects import group_durable, lane_durable, stats_key
from services.runtime.bus import Bus
from services.runtime.clock import SystemClock
from services.runtime.provision import provision
from services.runtime.server import EmbeddedServer
from services.worker import peers, rounds
from services.worker.peers import Peers
from support.backends import ollama_stand_in, vllm_stand_in
from support.eventually import eventually
from support.fleets import cell
from support.worker_bench import WORKER, Bench, models_of, running_worker

MODEL = "m:latest"


async def names(bench: Bench, worker: str) -> set[str]:
    """The names of a worker's latest report."""
    reports = [report for report in await bench.said(WorkerReported) if report.worker == worker]
    return set(models_of(reports[-1])) if reports else set()


async def test_one_that_was_first_waits_for_a_router_to_make_the_streams_and_says_so_once(
    natsd: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "STREAMS_S", 0.0)
    looks = asyncio.Semaphore(0)

    class Looking(Peers):
        async def start(self) -> None:
            looks.release()
            await super().start()

    async with await Bus.connect(natsd.url, name="w") as worker, await Bus.connect(natsd.url, name="r") as router:
        mine = Looking(worker, "w-1", SystemClock(), lambda: None)
        with capture_logs() as logged:
            meeting = asyncio.create_task(mine.meet())
            for _ in range(3):
                await looks.acquire()
            await provision(router)
            await meeting
        await mine.stop()
    said = [line["error"] for line in logged if line["action"] == "no_streams"]
    assert said and len(said) == len(set(said))


async def test_unequal_digests_under_one_name_are_kept_apart_and_equal_ones_join(
    natsd: EmbeddedServer, bus: Bus
) -> None:
    bench = Bench(bus)
    async with ollama_stand_in() as first, ollama_stand_in() as second:
        tags = second.pages["/api/tags"]["models"]
        tags[0] |= {"digest": "ff" * 32}
        del tags[1]
        tags[1] |= {"name": "other-name:70b"}
        async with running_worker(natsd.url, first.url, worker="w-1"):
            await eventually(lambda: names(bench, "w-1"))
            async with running_worker(natsd.url, second.url, worker="w-2"):
                await eventually(lambda: names(bench, "w-2"))
                assert await names(bench, "w-1") == {MODEL, "big:70b"}
                assert await names(bench, "w-2") == {f"{MODEL}@ffffffff", "big:70b"}


async def test_two_that_start_at_once_agree_on_who_was_first(natsd: EmbeddedServer, bus: Bus) -> None:
    bench = Bench(bus)
    async with ollama_stand_in() as first, ollama_stand_in() as second:
        second.pages["/api/tags"]["models"] = [{"name": MODEL, "digest": "ff" * 32, "size": 5, "details": {}}]
        async with (
            running_worker(natsd.url, first.url, worker="w-1"),
            running_worker(natsd.url, second.url, worker="w-2"),
        ):

            async def apart() -> bool:
                one, two = await names(bench, "w-1"), await names(bench, "w-2")
                return bool(one and two) and not one & two

            await eventually(apart)


async def test_one_name_for_three_kinds_of_server_is_one_group(natsd: EmbeddedServer, bus: Bus) -> None:
    bench = Bench(bus)
    table = {"m:latest": "qwen3", "org/m": "qwen3"}
    async with (
        ollama_stand_in() as ollama,
        vllm_stand_in() as vllm,
        running_worker(natsd.url, ollama.url, worker="w-1", models=table),
        running_worker(natsd.url, vllm.url, worker="w-2", models=table),
    ):
        await eventually(lambda: names(bench, "w-2"))
        assert await names(bench, "w-1") & await names(bench, "w-2") == {"qwen3"}


async def test_a_slower_holder_pulls_with_a_worse_priority(natsd: EmbeddedServer, bus: Bus) -> None:
    bench = Bench(bus)
    await bench.start()
    for worker, decode in (("w-fast", 80.0), (WORKER, 10.0)):
        measured = cell(MODEL, "general", worker, decode=decode, prefill=10 * decode, output=300)
        await bus.kv_put("stats", stats_key(MODEL, "general", worker), msgspec.json.encode(measured))
    async with (
        ollama_stand_in() as fast,
        ollama_stand_in() as slow,
        running_worker(natsd.url, fast.url, worker="w-fast"),
        running_worker(natsd.url, slow.url),
    ):
        await bench.confirm(MODEL)
        await bench.confirm(MODEL, worker="w-fast")
        group = group_durable("cpu_inference", MODEL)

        async def settled() -> bool:
            own, best = await bench.ready(), await bench.ready(worker="w-fast")
            assert (own.armed[lane_durable(WORKER)], best.armed[lane_durable("w-fast")]) == (0, 0)
            return best.armed[group] == 0 and own.armed[group] >= 7

        await eventually(settled)


async def test_new_figures_change_the_standing_pulls_before_they_expire(
    natsd: EmbeddedServer, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a pull stands for ten minutes: without a replacement the old priority would stand for as long."""
    monkeypatch.setattr(rounds, "EXPIRES_S", 600.0)
    bench = Bench(bus)
    await bench.start()
    group = group_durable("cpu_inference", MODEL)
    async with (
        ollama_stand_in() as fast,
        ollama_stand_in() as slow,
        running_worker(natsd.url, fast.url, worker="w-fast"),
        running_worker(natsd.url, slow.url),
    ):
        await bench.confirm(MODEL)
        await bench.confirm(MODEL, worker="w-fast")
        await eventually(lambda: _armed_as(bench, group, 0))
        for worker, decode in (("w-fast", 80.0), (WORKER, 10.0)):
            measured = cell(MODEL, "general", worker, decode=decode, prefill=10 * decode, output=300)
            await bus.kv_put("stats", stats_key(MODEL, "general", worker), msgspec.json.encode(measured))
        await eventually(lambda: _armed_as(bench, group, 7))


async def _armed_as(bench: Bench, group: str, least: int) -> bool:
    credit = await bench.ready()
    return group in credit.armed and (credit.armed[group] >= least if least else credit.armed[group] == 0)


class Skewed(SystemClock):
    """A wall clock ten minutes fast."""

    def unix(self) -> float:
        return super().unix() + 600.0


async def test_case_47_a_wrong_wall_clock_changes_only_what_is_displayed(natsd: EmbeddedServer, bus: Bus) -> None:
    bench = Bench(bus)
    await bench.start()
    async with ollama_stand_in() as server, running_worker(natsd.url, server.url, clock=Skewed()):
        await bench.confirm(MODEL)
        await bench.ready()
        await bench.release("t1", MODEL)
        end = await bench.until_said(TaskCompleted, "t1")
        assert end.at > SystemClock().unix() + 500
        assert end.times.total_s is not None and end.times.total_s < 60
        assert bench.loads[-1].others_age_s is None or bench.loads[-1].others_age_s < 60
