"""The benchmarker with a real router and real workers: who is measured, when it keeps still, and for whom it steps aside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from schemas.errors import HeadraceError
from schemas.events import TaskCompleted
from services.benchmarker.asking import Asking, Work
from services.router.service import RouterService
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from services.worker.telemetry.nvidia import Nvidia
from services.worker.telemetry.sample import Telemetry
from support.backends import Hang, Script, Stub, ollama_frame, ollama_stand_in, vllm_stand_in
from support.benchmarking import benchmarking, probes
from support.eventually import eventually
from support.nvml import Nvml
from support.routers import MODEL, dispatching, end_of, question, running_router, whole_log, with_workers
from support.worker_bench import CHAT, running_worker


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with ollama_stand_in() as server:
        yield server


@pytest.fixture
async def router(natsd: EmbeddedServer) -> AsyncIterator[RouterService]:
    async with running_router(natsd.url) as service:
        await dispatching(service)
        yield service


async def completed(bus: Bus, count: int) -> list[tuple[str, str, str, str]]:
    """The probes, once so many are completed."""

    async def look() -> list[tuple[str, str, str, str]] | None:
        found = await probes(bus)
        return found if sum(end == "completed" for *_, end in found) >= count else None

    return await eventually(look) or []


async def test_each_holder_is_probed_once_and_the_model_that_is_not_in_memory_is_left_alone(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus
) -> None:
    async with (
        running_worker(natsd.url, stub.url, worker="w1"),
        running_worker(natsd.url, stub.url, worker="w2"),
        benchmarking(natsd.url) as benchmarker,
    ):
        await completed(bus, 2)
        await eventually(lambda: not benchmarker.held and not benchmarker._payments)
        assert sorted(await probes(bus)) == [
            ("w1", MODEL, "joined", "completed"),
            ("w2", MODEL, "joined", "completed"),
        ]
    asked = [body for body in stub.chats() if body["options"]["num_predict"] == 8]
    assert len(asked) == 2
    first, second = (body["messages"][0]["content"] for body in asked)
    assert first.split(".")[0] != second.split(".")[0]  # else the second is answered from memory


async def test_a_real_task_that_waits_for_the_machine_ends_the_probe_at_once_and_the_probe_is_made_later(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus
) -> None:
    stub.scripts.append(Script([ollama_frame("a"), Hang()]))
    async with running_worker(natsd.url, stub.url, worker="w1"), benchmarking(natsd.url):
        await with_workers(router, 1)
        await eventually(lambda: bool(stub.chats()))
        real = await router.submit(question())
        assert (await end_of(router, real.task)).status.state == "completed"
        assert await probes(bus) == [("w1", MODEL, "joined", "a task waits for it")]
        assert stub.client_gone.is_set()
        held = [e for e in await whole_log(bus) if isinstance(e, TaskCompleted)]
        assert [(e.task, e.kind) for e in held] == [(real.task, "chat")]  # which told its speed as well


async def test_a_probe_gives_way_to_a_task_on_another_slot_of_its_machine(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus
) -> None:
    stub.scripts.append(Script([ollama_frame("a"), Hang()]))
    async with running_worker(natsd.url, stub.url, worker="w1", slots=2), benchmarking(natsd.url):
        await with_workers(router, 1)
        await eventually(lambda: bool(stub.chats()))
        stub.scripts.append(Script([ollama_frame("b"), Hang()]))
        real = (await router.submit(question())).task
        await eventually(lambda: _ended(bus, "a task runs there"))
        await router.cancel(real, "the test is over")


async def _ended(bus: Bus, how: str) -> bool:
    return how in {end for *_, end in await probes(bus)}


async def test_a_machine_of_two_slots_tells_alone_and_side_by_side(
    natsd: EmbeddedServer, router: RouterService, bus: Bus
) -> None:
    async with (
        vllm_stand_in() as vllm,
        running_worker(natsd.url, vllm.url, worker="w1", slots=2),
        benchmarking(natsd.url),
    ):
        await completed(bus, 3)
        assert [(w, reason) for w, _, reason, _ in await probes(bus)] == [("w1", "joined")] * 3
    assert all(body["ignore_eos"] for body in vllm.chats())


async def test_a_game_on_the_gpu_stops_all_that_nobody_asked_for_until_it_is_over(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus
) -> None:
    use = SimpleNamespace(gpu=37)
    nvml = Nvml(nvmlDeviceGetUtilizationRates=lambda _: use)
    telemetry = Telemetry(nvidia=Nvidia(nvml))
    async with (
        running_worker(natsd.url, stub.url, worker="w1", telemetry=telemetry),
        benchmarking(natsd.url) as benchmarker,
    ):
        await eventually(lambda: "others use 37 % of it" in benchmarker.held.values())
        assert await probes(bus) == []
        use.gpu = 3
        await completed(bus, 1)


async def test_a_game_that_begins_during_a_measurement_keeps_back_the_rest_of_it(
    natsd: EmbeddedServer, router: RouterService, bus: Bus
) -> None:
    use = SimpleNamespace(gpu=3)
    telemetry = Telemetry(nvidia=Nvidia(Nvml(nvmlDeviceGetUtilizationRates=lambda _: use)))
    async with (
        vllm_stand_in() as vllm,
        running_worker(natsd.url, vllm.url, worker="w1", slots=2, telemetry=telemetry),
        benchmarking(natsd.url) as benchmarker,
    ):
        await eventually(lambda: bool(vllm.chats()))
        use.gpu = 90  # nobody can tell it from ours before ours has ended
        await completed(bus, 1)
        assert benchmarker._payments, "two at once are still to be measured"
        await eventually(lambda: not benchmarker._payments)
        assert [end for *_, end in await probes(bus)] == ["completed"]


async def test_a_pulled_plug_ends_a_measurement(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus, tmp_path: Path
) -> None:
    supplies = tmp_path / "sys/class/power_supply"
    for name, kind in (("AC", "Mains"), ("BAT0", "Battery")):
        (supplies / name).mkdir(parents=True)
        (supplies / name / "type").write_text(kind)
    (supplies / "AC/online").write_text("1")
    stub.scripts.append(Script([ollama_frame("a"), Hang()]))
    telemetry = Telemetry(root=tmp_path)
    async with running_worker(natsd.url, stub.url, worker="w1", telemetry=telemetry), benchmarking(natsd.url):
        await eventually(lambda: bool(stub.chats()))
        (supplies / "AC/online").write_text("0")
        await eventually(lambda: _ended(bus, "it runs on battery"))
        assert len(await probes(bus)) == 1


async def test_a_machine_that_tells_nothing_gets_its_join_probe_and_no_more(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus
) -> None:
    at_once = {"stale_days": 1e-7, "budget": 1.0}  # a debt is due as soon as the last one is paid
    async with (
        running_worker(natsd.url, stub.url, worker="silent", local=False),
        benchmarking(natsd.url, rest_s=0.0, **at_once) as benchmarker,
    ):
        await completed(bus, 1)
        real = await router.submit(question())
        assert (await end_of(router, real.task)).status.state == "completed"
        stale = ("probe", MODEL, "general", "silent")
        why = "it does not say whether somebody else uses it"
        await eventually(lambda: benchmarker.held.get(stale) == why)
        assert [(w, reason) for w, _, reason, _ in await probes(bus)] == [("silent", "joined")]


async def test_a_machine_that_tells_is_measured_again_when_it_is_due(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus
) -> None:
    idle = Nvml(nvmlDeviceGetUtilizationRates=lambda _: SimpleNamespace(gpu=3))
    async with (
        running_worker(natsd.url, stub.url, worker="w1", telemetry=Telemetry(nvidia=Nvidia(idle))),
        benchmarking(natsd.url, rest_s=0.0, stale_days=1e-7, budget=1.0),
    ):
        await completed(bus, 1)
        real = await router.submit(question())
        assert (await end_of(router, real.task)).status.state == "completed"

        async def is_again() -> bool:
            """What the real task made worth measuring may be due first."""
            return ("w1", MODEL, "stale", "completed") in await probes(bus)

        await eventually(is_again)


async def test_one_measures_and_the_other_waits_until_it_is_gone(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus
) -> None:
    async with benchmarking(natsd.url, "b1") as first:
        await eventually(lambda: first._term.ours)
        async with benchmarking(natsd.url, "b2") as second:
            async with running_worker(natsd.url, stub.url, worker="w1"):
                await completed(bus, 1)
                await eventually(lambda: bool(second._ground.fleet.machines))
            assert not second._term.ours
            assert first._term.ours
            assert len(await probes(bus)) == 1


async def test_what_a_dead_benchmarker_left_behind_is_cancelled_by_the_next(
    natsd: EmbeddedServer, router: RouterService, bus: Bus
) -> None:
    async with await Bus.connect(natsd.url, name="dead") as own:
        asking = Asking(own)
        await asking.__aenter__()
        work = Work(purpose="probe", model=MODEL, worker="nobody", domain="general", body=CHAT)
        left = asyncio.create_task(asking.run(work))
        await eventually(lambda: bool(router.desk.state.tasks))
    async with benchmarking(natsd.url):
        await eventually(lambda: not router.desk.state.tasks)
        assert [end for *_, end in await probes(bus)] == ["its benchmarker is gone"]
    left.cancel()
    await asyncio.wait([left])
    await asking.__aexit__()


async def test_switched_off_it_measures_nothing(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus
) -> None:
    async with (
        running_worker(natsd.url, stub.url, worker="w1"),
        benchmarking(natsd.url, on=False) as benchmarker,
    ):
        await with_workers(router, 1)
        await eventually(lambda: benchmarker._term.ours)
        real = await router.submit(question())
        assert (await end_of(router, real.task)).status.state == "completed"
        assert await probes(bus) == []


async def test_who_asks_is_told_what_is_owed_and_what_keeps_it_back(
    natsd: EmbeddedServer, router: RouterService, stub: Stub
) -> None:
    nvml = Nvml(nvmlDeviceGetUtilizationRates=lambda _: SimpleNamespace(gpu=37))
    with pytest.raises(HeadraceError, match="no benchmarker answers"):
        await router.bench_owed()
    async with (
        running_worker(natsd.url, stub.url, worker="w1", telemetry=Telemetry(nvidia=Nvidia(nvml))),
        benchmarking(natsd.url) as benchmarker,
    ):
        await eventually(lambda: "others use 37 % of it" in benchmarker.held.values())
        told = await router.bench_owed()
        assert [(debt.worker, debt.reason, debt.why) for debt in told.owed] == [
            ("w1", "joined", "others use 37 % of it")
        ]
        assert told.on and told.total == 1 and set(told.left_s) == {"w1"}
