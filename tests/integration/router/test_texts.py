"""services.router.texts on a real nats-server: what is left of a task's texts when its time is over, also after a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from schemas.subjects import body_subject
from services.router import texts
from services.router.service import RouterService
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from support.backends import Gate, Script, Stub, ollama_done, ollama_frame, ollama_stand_in
from support.eventually import eventually
from support.routers import dispatching, end_of, question, running_router, started, with_workers
from support.worker_bench import running_worker

SECRET = "the cat sleeps in the blue drawer"


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with ollama_stand_in() as server:
        yield server


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "SWEEP_S", 0.05)
    monkeypatch.setattr(texts, "LEAST_S", 0.5)


async def stored(bus: Bus) -> set[str]:
    """The kinds of text that TASKS holds."""
    info: dict[str, Any] = await bus.api("STREAM.INFO.TASKS", {"subjects_filter": ">"})
    return {subject.split(".")[1] for subject in info["state"].get("subjects") or {}}


async def answered(service: RouterService) -> str:
    task = (await service.submit(question(SECRET))).task
    assert (await end_of(service, task)).status.state == "completed"
    return task


async def none_left(bus: Bus) -> None:
    async def empty() -> bool:
        return await stored(bus) == set()

    await eventually(empty)


async def test_after_its_time_nothing_of_a_task_is_left(natsd: EmbeddedServer, stub: Stub, bus: Bus) -> None:
    async with running_router(natsd.url, keep_s=0) as router, running_worker(natsd.url, stub.url):
        await dispatching(router)
        await with_workers(router, 1)
        task = await answered(router)
        await none_left(bus)
        assert await router.answer(task) is None
        status = await router.status(task)
        assert status is not None and status.state == "completed"


async def test_a_restart_in_between_forgets_no_text(natsd: EmbeddedServer, stub: Stub, bus: Bus) -> None:
    async with running_worker(natsd.url, stub.url):
        async with running_router(natsd.url) as router:
            await dispatching(router)
            await with_workers(router, 1)
            await answered(router)
        assert await stored(bus) >= {"in", "out"}
        async with running_router(natsd.url, keep_s=0):
            await none_left(bus)


async def test_a_running_task_and_an_answer_within_its_time_keep_theirs(
    natsd: EmbeddedServer, stub: Stub, bus: Bus
) -> None:
    gate = Gate()
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_done()]))
    async with running_router(natsd.url, keep_s=3600) as router, running_worker(natsd.url, stub.url):
        await dispatching(router)
        await with_workers(router, 1)
        first = (await router.submit(question(SECRET))).task
        await started(router, first)
        await bus.publish_stored(body_subject("me", "never-submitted"), b"", "lost")

        async def only_the_running_ones_is_left() -> bool:
            return await bus.last_for("TASKS", body_subject("me", "never-submitted")) is None and "in" in await stored(
                bus
            )

        await eventually(only_the_running_ones_is_left)
        gate.opened.set()
        end = await end_of(router, first)

        async def its_prompt_is_gone() -> bool:
            return "in" not in await stored(bus)

        await eventually(its_prompt_is_gone)
        assert end.answer is not None and await router.answer(first) == end.answer


async def test_what_was_deleted_is_not_on_the_disk(natsd: EmbeddedServer, bus: Bus) -> None:
    def found() -> bool:
        files = [file for file in natsd.directory.rglob("*.blk") if "TASKS" in file.parts]
        return any(SECRET.encode() in file.read_bytes() for file in files)

    for n, text in enumerate(["before", SECRET, "after"]):  # a block with nothing else in it would go as a whole
        await bus.publish_stored(body_subject("me", f"t{n}"), text.encode(), f"t{n}.in")
    await eventually(found)
    assert await bus.delete_message("TASKS", 2, erase=True)
    await eventually(lambda: not found())
