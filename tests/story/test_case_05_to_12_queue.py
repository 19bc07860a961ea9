"""Cases 5, 7 and 12: a queue that people can see, that has an end, and that never stands before the pages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from schemas.events import Options
from services.router.dispatch.permits import Limit, Limits
from services.router.fullness import Places
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.router.port import StatusUpdate, TaskStatus
from services.router.service import RouterService
from services.runtime.server import EmbeddedServer
from support.backends import Gate, Hang, Script, Stub, ollama_done, ollama_frame, ollama_stand_in
from support.eventually import PATIENCE_S, eventually
from support.routers import MODEL, SkippingClock, dispatching, question, running_router, with_workers
from support.worker_bench import running_worker

ASKED = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with ollama_stand_in() as server:
        yield server


@asynccontextmanager
async def wire_to(router: RouterService) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        serving(create_app(router), "127.0.0.1", 0, drain_s=1) as url,
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE_S) as http,
    ):
        yield http


async def test_case_05_a_backend_that_queues_for_ever_meets_a_queue_with_an_end(
    natsd: EmbeddedServer, stub: Stub
) -> None:
    stub.scripts += [Script([ollama_frame("a"), Hang()])] * 50
    async with (
        running_router(natsd.url, places=Places(total=8, client=6)) as router,
        running_worker(natsd.url, stub.url, drain_s=0.1),
        wire_to(router) as http,
    ):
        await dispatching(router)
        await with_workers(router, 1)
        answers = await asyncio.gather(*(http.post("/route", json={"prompt": "hi", "model": MODEL}) for _ in range(50)))
        accepted = [answer for answer in answers if answer.status_code == 202]
        refused = [answer for answer in answers if answer.status_code != 202]
        assert {answer.status_code for answer in refused} == {429}
        assert len(accepted) <= 7  # six wait, and one runs
        for answer in refused:
            error = answer.json()["error"]
            assert (error["code"], error["numbers"]["waiting"], error["numbers"]["limit"]) == ("busy", 6, 6)
            assert int(answer.headers["retry-after"]) >= 1 and error["retry_after_s"] > 0
        await eventually(lambda: len(stub.chats()) == 1)
        while (await http.post("/route", json={"prompt": "hi", "model": MODEL})).status_code == 202:
            pass  # the place of the one that runs
        refused_openai = await http.post("/v1/chat/completions", json=ASKED)
        told = refused_openai.json()["error"]
        assert (refused_openai.status_code, told["type"], told["code"]) == (429, "rate_limit_error", "busy")
        assert told["numbers"]["limit"] == 6 and "[limits] queue_client" in told["message"]


async def test_case_05_a_queue_full_of_everybodys_tasks_is_a_503(natsd: EmbeddedServer) -> None:
    async with running_router(natsd.url, places=Places(total=2, client=2)) as router, wire_to(router) as http:
        await dispatching(router)
        for client in ("a", "b"):
            asked = {"prompt": "hi", "client": client, "constraints": {"urgency": "batch"}}
            assert (await http.post("/route", json=asked)).status_code == 202
        refused = await http.post("/route", json={"prompt": "hi", "client": "c"})
        error = refused.json()["error"]
        assert (refused.status_code, error["numbers"]) == (503, {"waiting": 2, "limit": 2, "running": 0})
        assert refused.headers["retry-after"] == "5" and "nobody can tell" in error["message"]


async def test_case_07_ten_jobs_for_one_machine_see_their_place_and_start_come_nearer(
    natsd: EmbeddedServer, stub: Stub
) -> None:
    gates = [Gate() for _ in range(10)]
    stub.scripts += [Script([ollama_frame("a"), gate, ollama_done()]) for gate in gates]
    for model in stub.pages["/api/tags"]["models"]:
        model["size"] = 5_000_000_000  # so that a prediction is some seconds
    clock = SkippingClock()
    async with running_router(natsd.url, clock=clock) as router, running_worker(natsd.url, stub.url, drain_s=0.1):
        await dispatching(router)
        await with_workers(router, 1)
        tasks = [(await router.submit(question(options=Options(max_tokens=200)))).task for _ in range(10)]
        last = tasks[-1]
        router.desk.clock.interval_s = 1_000.0  # this router believes its own clock
        pushed: list[TaskStatus] = []
        reading = asyncio.create_task(_follow(router, last, pushed))
        polled: list[TaskStatus] = []
        for n, gate in enumerate(gates):
            await eventually(lambda n=n: len(stub.chats()) == n + 1)

            def seen(n: int = n) -> bool:
                clock.skipped += 0.1
                found = next((s for s in router.queue() if s.task == last), None)
                if found is None or found.state != "waiting":
                    return n == 9
                polled.append(found)
                return found.position == 9 - n and bool(pushed) and pushed[-1].position == 9 - n

            await eventually(seen)
            gate.opened.set()
        await asyncio.wait_for(reading, PATIENCE_S)
    for statuses in (polled, pushed):
        places = [status.position for status in statuses if status.position is not None]
        starts = [status.eta_s for status in statuses if status.eta_s is not None]
        assert places == sorted(places, reverse=True) and places[-1] == 1
        assert starts == sorted(starts, reverse=True) and len(starts) == len(statuses)
    assert {status.position for status in pushed} == set(range(1, 10))
    assert all(status.eta_s is not None and status.reason for status in polled)


async def _follow(router: RouterService, task: str, found: list[TaskStatus]) -> None:
    async with router.follow(task) as updates:
        async for update in updates:
            if isinstance(update, StatusUpdate) and update.status.position is not None:
                found.append(update.status)  # noqa: PERF401 - read while it grows


PAGES = ("/", "/healthz", "/readyz", "/queue", "/workers", "/models", "/stats", "/v1/models", "/openapi.json")


async def test_case_12_a_limit_of_one_and_a_full_queue_stand_before_no_page(natsd: EmbeddedServer, stub: Stub) -> None:
    stub.scripts.append(Script([ollama_frame("a"), Hang()]))
    limits = Limits(model=Limit(1), client=Limit(1), backend=Limit(1))
    async with (
        running_router(natsd.url, limits=limits, places=Places(total=1, client=1)) as router,
        running_worker(natsd.url, stub.url, slots=2, drain_s=0.1),
        wire_to(router) as http,
    ):
        await dispatching(router)
        await with_workers(router, 1)
        await router.submit(question())
        await eventually(lambda: len(stub.chats()) == 1)
        waiting = await router.submit(question())
        assert (await http.post("/route", json={"prompt": "hi"})).status_code in (429, 503)
        for page in (*PAGES, f"/task/{waiting.task}", f"/explain/{waiting.task}"):
            assert (await http.get(page)).status_code == 200, page
        assert (await http.get("/route/preview", params={"prompt": "hi"})).status_code == 200
        files = re.findall(r"/page/static/[^\"']+", (await http.get("/", headers={"accept": "text/html"})).text)
        assert {name.rpartition(".")[2] for name in files} >= {"css", "js"}
        for name in files:
            assert (await http.get(name)).status_code == 200, name
        shown = (await http.get("/queue")).json()
        assert (shown["waiting"], shown["running"]) == (1, 1)
        first = shown["tasks"][0]
        assert (first["position"], first["reason"].partition(":")[0]) in {
            (1, "client_full"),
            (1, "model_full"),
            (1, "backend_full"),
        }
