"""Two real Ollama servers as the two machines, under a whole Headrace: shared work, a kill, a stall. ``make e2e-ollama``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from services.cli.client import RouterClient, task_path
from services.cli.parts import BackendAt
from services.cli.stack import Stack
from support.backends import vllm_stand_in
from support.docker import Unavailable
from support.eventually import eventually
from support.llama import MODEL as LLAMA_MODEL, llama
from support.ollama import MODEL, OllamaServer, ollama

pytestmark = pytest.mark.e2e

STALL_S = 3.0
SETTINGS = f"[worker.timeouts]\nstall_s = {STALL_S}\n"
LONG = {"prompt": "Tell a very long story about a water mill.", "model": MODEL, "constraints": {"max_tokens": 150}}


class Machines:
    """A Headrace over two Ollamas; ``ask`` returns a task's id, ``ended`` its last status."""

    def __init__(self, servers: dict[str, OllamaServer], router: RouterClient) -> None:
        self.servers, self.router = servers, router

    async def ask(self, body: dict[str, Any]) -> str:
        return str((await self.router.post("/route", body))["task"])

    async def status(self, task: str) -> dict[str, Any]:
        return dict((await self.router.get(task_path(task)))["status"])

    async def started(self, task: str) -> str:
        """The name of the machine that runs it, once it has begun to answer."""

        async def look() -> str | None:
            status = await self.status(task)
            return str(status["worker"]) if status["state"] == "running" else None

        return str(await eventually(look, within_s=60))

    async def ended(self, task: str, *, within_s: float = 120) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            status = await self.status(task)
            return status if status["state"] in ("completed", "failed", "dead", "cancelled") else None

        return dict(await eventually(look, within_s=within_s, every_s=0.1) or {})

    async def events(self, task: str) -> list[dict[str, Any]]:
        return list((await self.router.get(f"/explain/{task}"))["events"])


@pytest.fixture
async def machines(tmp_path: Path) -> AsyncIterator[Machines]:
    config = tmp_path / "headrace.toml"
    config.write_text(SETTINGS)
    async with AsyncExitStack() as stack:
        try:
            servers = {name: stack.enter_context(ollama()) for name in ("one", "two")}
        except Unavailable as reason:
            pytest.skip(str(reason))
        backends = [BackendAt(name, server.url, folder=name) for name, server in servers.items()]
        whole = await stack.enter_async_context(Stack(tmp_path / "data", backends=backends, config=config, sync="10s"))
        yield Machines(servers, await stack.enter_async_context(RouterClient(whole.router_url)))


def ends_of(events: list[dict[str, Any]]) -> list[str]:
    terminal = ("task.completed", "task.failed", "task.cancelled", "task.dead")
    return [event["type"] for event in events if event["type"] in terminal]


async def test_both_machines_share_the_work_under_one_name(machines: Machines) -> None:
    bodies = [{"prompt": f"Name {n} animals.", "model": MODEL, "constraints": {"max_tokens": 24}} for n in range(2, 10)]
    tasks = await asyncio.gather(*(machines.ask(body) for body in bodies))
    ends = [await machines.ended(task) for task in tasks]
    assert {end["state"] for end in ends} == {"completed"}
    assert len({end["worker"] for end in ends}) == 2
    for end in ends:
        assert end["tokens"]["output"] > 0
        assert end["times"]["source"] == "backend"
        assert end["times"]["decode_s"] > 0


async def test_a_killed_ollama_costs_an_attempt_and_no_task(machines: Machines) -> None:
    task = await machines.ask(LONG)
    first = await machines.started(task)
    names = await names_of(machines)
    machines.servers[names[first]].kill()
    end = await machines.ended(task)
    assert (end["state"], end["attempt"]) == ("completed", 2)
    assert names[end["worker"]] != names[first]
    events = await machines.events(task)
    assert ends_of(events) == ["task.completed"]
    failures = [event["failure"] for event in events if event["type"] == "attempt.failed"]
    assert failures == ["disconnect"]


async def test_case_31_a_model_that_stops_in_mid_answer_is_a_stall_although_its_server_answers(
    machines: Machines,
) -> None:
    task = await machines.ask(LONG)
    first = await machines.started(task)
    names = await names_of(machines)
    frozen = machines.servers[names[first]]
    first_token = asyncio.Event()
    reader = asyncio.create_task(
        read(machines, task, first_token)
    )  # stays: without a reader the task would be cancelled
    await first_token.wait()
    frozen.freeze()
    try:
        end = await machines.ended(task)
        assert "restart" in await reader
    finally:
        frozen.freeze(thaw=True)
    assert end["state"] == "completed", end
    assert names[end["worker"]] != names[first]
    failures = [event["failure"] for event in await machines.events(task) if event["type"] == "attempt.failed"]
    assert failures == ["stall"]


async def names_of(machines: Machines) -> dict[str, str]:
    """Worker id or name -> the machine's name."""
    workers = (await machines.router.get("/workers"))["workers"]
    return {worker["id"]: worker["name"] for worker in workers} | {worker["name"]: worker["name"] for worker in workers}


async def read(machines: Machines, task: str, first_token: asyncio.Event) -> list[str]:
    """The names of all updates until the task's end."""
    names = []
    async for event in machines.router.events(task_path(task, "stream")):
        names.append(event.name)
        if event.name == "token":
            first_token.set()
    return names


async def test_one_name_is_answered_by_an_ollama_a_llama_cpp_and_a_vllm_stand_in(tmp_path: Path) -> None:
    config = tmp_path / "headrace.toml"
    config.write_text(f'[models]\n"{MODEL}" = "small"\n"{LLAMA_MODEL}" = "small"\n"org/m" = "small"\n')
    async with AsyncExitStack() as stack:
        try:
            box = stack.enter_context(ollama())
        except Unavailable as reason:
            pytest.skip(str(reason))
        urls = {
            "box": box.url,
            "bench": (await stack.enter_async_context(llama())).url,
            "rack": (await stack.enter_async_context(vllm_stand_in())).url,
        }
        backends = [BackendAt(name, url, folder=name) for name, url in urls.items()]
        whole = await stack.enter_async_context(Stack(tmp_path / "data", backends=backends, config=config, sync="10s"))
        router = await stack.enter_async_context(RouterClient(whole.router_url))
        asked = Machines({"box": box}, router)
        bodies = [
            {"prompt": f"Name {n} animals.", "model": "small", "constraints": {"max_tokens": 16}} for n in range(2, 14)
        ]
        tasks = await asyncio.gather(*(asked.ask(body) for body in bodies))
        ends = [await asked.ended(task) for task in tasks]
        assert {(end["state"], end["model"]) for end in ends} == {("completed", "small")}
        names = await names_of(asked)
        assert {names[end["worker"]] for end in ends} == {"box", "bench", "rack"}
