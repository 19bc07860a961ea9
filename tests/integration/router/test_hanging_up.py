"""A client of an API that has no way back hangs up: its task is cancelled and the model server freed at once (case 41)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from schemas.events import Terminal
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.router.service import RouterService
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from support.backends import Gate, Hang, Script, Stub, ollama_done, ollama_frame, ollama_stand_in
from support.eventually import PATIENCE_S, eventually
from support.routers import MODEL, end_of, running_router, started, whole_log, with_workers
from support.worker_bench import running_worker

MESSAGES = [{"role": "user", "content": "tell me a long story"}]
ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"stream": True},
    "/v1/completions": {"messages": None, "prompt": "tell me a long story", "stream": False},
    "/v1/responses": {"messages": None, "input": "tell me a long story", "stream": True},
    "/v1/messages": {"max_tokens": 900, "stream": False},
    "/api/chat": {},
}


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with ollama_stand_in() as server:
        yield server


@pytest.fixture
async def fleet(natsd: EmbeddedServer, stub: Stub) -> AsyncIterator[tuple[RouterService, str]]:
    """A grace time that no test would outlive."""
    async with (
        running_router(natsd.url, grace_s=3600.0) as router,
        running_worker(natsd.url, stub.url),
        serving(create_app(router), "127.0.0.1", 0, drain_s=1) as url,
    ):
        await with_workers(router, 1)
        yield router, url


@pytest.mark.parametrize("path", ASKED)
async def test_case_41_hanging_up_is_stop(path: str, fleet: tuple[RouterService, str], stub: Stub, bus: Bus) -> None:
    router, url = fleet
    stub.scripts.append(Script([ollama_frame("once"), Hang()]))
    asked = {"model": MODEL, "messages": MESSAGES, **ASKED[path]}
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as client:
        body = {key: value for key, value in asked.items() if value is not None}
        waiting = asyncio.create_task(client.post(path, json=body))
        task = await only_task(router)
        await started(router, task)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    await asyncio.wait_for(stub.client_gone.wait(), PATIENCE_S)
    assert (await end_of(router, task)).status.detail == "its client went away"
    assert [type(e).__name__ for e in await whole_log(bus) if isinstance(e, Terminal)] == ["TaskCancelled"]


async def test_who_hangs_up_takes_nothing_from_another_reader(fleet: tuple[RouterService, str], stub: Stub) -> None:
    router, url = fleet
    gate = Gate()
    stub.scripts.append(Script([ollama_frame("once "), gate, ollama_frame("upon"), ollama_done()]))
    async with httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as client:
        body = {"model": MODEL, "messages": MESSAGES, "stream": True}
        waiting = asyncio.create_task(client.post("/v1/chat/completions", json=body))
        task = await only_task(router)
        await started(router, task)
        reading = asyncio.create_task(end_of(router, task))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        gate.opened.set()
        assert (await reading).status.state == "completed"


async def only_task(router: RouterService) -> str:
    await eventually(lambda: bool(router.queue()))
    return router.queue()[0].task
