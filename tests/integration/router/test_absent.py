"""Tasks for machines that are not there, on a real nats-server: told after a while, or woken up for."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from services.router.dispatch.turn import Absence
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.router.waking import Waker
from services.runtime.server import EmbeddedServer
from services.runtime.settings import Wake
from support.backends import Stub, ollama_stand_in
from support.eventually import PATIENCE_S, eventually
from support.routers import (
    MODEL,
    SkippingClock,
    dispatching,
    end_of,
    mortal_worker,
    question,
    running_router,
    with_workers,
)
from support.worker_bench import running_worker

MAC = "0a:1b:2c:3d:4e:5f"


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with ollama_stand_in() as server:
        yield server


async def test_a_client_is_told_503_with_the_model_its_holders_and_when_they_were_last_seen(
    natsd: EmbeddedServer, stub: Stub
) -> None:
    clock = SkippingClock()
    async with running_router(natsd.url, clock=clock, absence=Absence(wait_s=30.0)) as router:
        router.desk.clock.interval_s = 1_000.0  # this router believes its own clock
        await dispatching(router)
        async with mortal_worker(natsd.url, stub.url, "w-bench") as kill:
            await with_workers(router, 1)
            await kill()
        clock.skipped += 20.0
        batch = (await router.submit(question(urgency="batch"))).task
        async with (
            serving(create_app(router), "127.0.0.1", 0, drain_s=1) as url,
            httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE_S) as http,
        ):
            asked = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}
            asking = asyncio.create_task(http.post("/v1/chat/completions", json=asked))

            def absent() -> bool:
                return len([w for w in router.desk.live.waits.values() if w.absent_since is not None]) == 2

            await eventually(absent)
            clock.skipped += 31.0
            answer = await asking
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (503, "busy")
        assert f"nobody who holds {MODEL} was there within 3" in error["message"]
        assert "mortal was last heard 5" in error["message"] and " s ago" in error["message"]
        assert "retry-after" in answer.headers
        assert router.desk.state.task(batch) is router.desk.state.tasks[batch]  # it waits on


async def test_a_sleeping_machine_gets_a_magic_packet_when_a_task_waits_for_it(
    natsd: EmbeddedServer, stub: Stub
) -> None:
    clock = SkippingClock()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as card:
        card.bind(("127.0.0.1", 0))
        card.setblocking(False)
        waker = Waker({"mortal": Wake(mac=MAC, broadcast="127.0.0.1", port=card.getsockname()[1])})
        absence = Absence(wait_s=30.0, wakeable=waker.names)
        async with running_router(natsd.url, clock=clock, absence=absence, wake=waker.wake) as router:
            router.desk.clock.interval_s = 1_000.0
            await dispatching(router)
            async with mortal_worker(natsd.url, stub.url, "w-bench") as kill:
                await with_workers(router, 1)
                await kill()
            clock.skipped += 20.0
            task = (await router.submit(question())).task
            packet = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(card, 200), PATIENCE_S)
            assert packet == b"\xff" * 6 + bytes.fromhex(MAC.replace(":", "")) * 16
            clock.skipped += 60.0  # longer than without a packet
            async with running_worker(natsd.url, stub.url):
                assert (await end_of(router, task)).status.state == "completed"


async def test_a_command_wakes_a_machine_and_the_task_runs_there(
    natsd: EmbeddedServer, stub: Stub, tmp_path: Path
) -> None:
    woken = tmp_path / "woken"
    waker = Waker({"mortal": Wake(command=f"echo up > {woken}")})
    absence = Absence(wait_s=30.0, wakeable=waker.names)
    clock = SkippingClock()
    async with running_router(natsd.url, clock=clock, absence=absence, wake=waker.wake) as router:
        router.desk.clock.interval_s = 1_000.0
        await dispatching(router)
        async with mortal_worker(natsd.url, stub.url, "w-bench") as kill:
            await with_workers(router, 1)
            await kill()
        clock.skipped += 20.0
        task = (await router.submit(question())).task
        await eventually(woken.exists)
        async with running_worker(natsd.url, stub.url):
            assert (await end_of(router, task)).status.state == "completed"
