"""Two machines that batch 64 streams each, kept busy: what comes through beside the same load sent directly.

Prints and asserts no figure. nats-server, projector, workers and stand-ins are processes; the router runs in the client's, so
that its port can be asked without HTTP too (its HTTP surface is measured beside it). Embeddings of a set length, 200 a second;
and as many at once as one machine has streams, and as both have. Everything shares this machine's cores: the line under each
figure says who used them.
``HEADRACE_BENCH_SECONDS`` sets the length of each load.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from schemas.events import Options, Wants
from schemas.work import Body
from services.cli.parts import BackendAt, Surroundings, projector_part, worker_part
from services.cli.supervision import Supervisor
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.router.port import EndUpdate, NewTask
from services.router.service import RouterService
from services.runtime.bus import Bus
from services.runtime.memory import settle
from services.runtime.server import EmbeddedServer, Sync
from support.http_lines import Lines
from support.loads import Cores, closed_load, open_load, p50_p99
from support.routers import dispatching, new_router, with_workers
from support.sleepers import Sleepers
from support.stand_ins import CHARS_A_TOKEN, Machine, StandIns

pytestmark = pytest.mark.bench

SECONDS = float(os.environ.get("HEADRACE_BENCH_SECONDS", "10"))
SLOTS, WORKERS = 64, 2
PREFILL = 1_000.0
EMBEDDER, CHAT = "stand-in-embed", "stand-in"
RATE = 200.0
MACHINES = [
    Machine(f"batch{n}", decode=1e4, prefill=PREFILL, slots=SLOTS, slowdown=0.005, models=(EMBEDDER, CHAT))
    for n in range(1, WORKERS + 1)
]


class Fleet(NamedTuple):
    service: RouterService
    router_url: str
    processes: dict[str, int]


@pytest.mark.parametrize("sync", ["10s", "always"])
async def test_a_fleet_that_batches(sync: Sync, tmp_path: Path) -> None:
    async with StandIns(tmp_path, MACHINES) as urls, fleet(tmp_path, urls, sync) as running, AsyncExitStack() as open_:
        direct = Direct([await open_.enter_async_context(Lines(url)) for url in urls.values()])
        through = Through(running.service)
        over_http = OverHttp(await open_.enter_async_context(Lines(running.router_url)))
        await closed_load(through.ask(0.02), clients=8, seconds=1.0)  # connections, imports, the first statistics
        for task_s in (0.2, 1.0, 0.02):
            await compare(f"sync {sync}, {task_s * 1e3:.0f} ms", task_s, direct, through, over_http, running)


@pytest.mark.parametrize("sync", ["10s", "always"])
async def test_starts_of_the_protocol_alone(sync: Sync, tmp_path: Path) -> None:
    """Neither HTTP nor a projector: the router's port, the server, and workers whose model server is a timer."""
    async with AsyncExitStack() as running:
        server, service = await router(running, tmp_path, sync)
        sleepers = Sleepers(server.url, WORKERS, SLOTS, EMBEDDER, PREFILL)
        await running.enter_async_context(sleepers)
        await dispatching(service)
        await with_workers(service, WORKERS, EMBEDDER)
        assert server.process is not None
        ask = Through(service).ask(0.02)
        for clients in (SLOTS, SLOTS * WORKERS, 2 * SLOTS * WORKERS):
            cores = Cores({"client and router": os.getpid(), "nats": server.process.pid} | sleepers.pids)
            rate = await closed_load(ask, clients=clients, seconds=SECONDS)
            print(
                f"\nsync {sync}, 20 ms, the protocol alone, {clients} tasks at once: {rate:.0f} starts/s (target 1,500)"
            )
            print(f"  cores: {cores.used()}")


async def compare(
    title: str, task_s: float, direct: Direct, through: Through, over_http: OverHttp, running: Fleet
) -> None:
    """Open load at ``RATE``, as far as the streams can serve it; then half of the streams at once, and all."""
    if RATE * task_s < SLOTS * WORKERS:
        rng, times, rates = random.Random(1), dict[str, list[float]](), dict[str, float]()
        for name, target in (("direct", direct), ("port", through)):
            cores, began = Cores(running.processes), asyncio.get_running_loop().time()
            times[name] = await open_load(target.ask(task_s), rate=RATE, seconds=SECONDS, rng=rng)
            rates[name] = len(times[name]) / (asyncio.get_running_loop().time() - began)
        added = median(times["port"]) - median(times["direct"])
        print(
            f"\n{title}, {RATE:g} embeddings a second: {rates['port'] / rates['direct']:.1%} of what came directly, "
            f"added p50 {added * 1e3:.1f} ms (through the port {p50_p99(times['port'])})"
        )
        print(f"  cores: {cores.used()}")
    for clients in (SLOTS, SLOTS * WORKERS):
        straight = await closed_load(direct.ask(task_s), clients=clients, seconds=SECONDS)
        for name, ask in (("port", through.ask(task_s)), ("HTTP", over_http.ask(task_s))):
            cores = Cores(running.processes)
            rate = await closed_load(ask, clients=clients, seconds=SECONDS)
            print(f"{title}, {clients} at once, {name}: {rate:.0f}/s, directly {straight:.0f}/s: {rate / straight:.1%}")
            print(f"  cores: {cores.used()}")


def text_for(task_s: float, number: int) -> str:
    """A prompt that takes this long alone; no two are equal."""
    return f"{number} ".ljust(round(task_s * PREFILL) * CHARS_A_TOKEN, "x")


class Direct:
    """Straight to the model servers, one after the other."""

    def __init__(self, machines: list[Lines]) -> None:
        self.machines = machines

    def ask(self, task_s: float):  # type: ignore[no-untyped-def]
        async def one(number: int) -> None:
            lines = self.machines[number % len(self.machines)]
            reply = await lines.post("/v1/embeddings", {"model": EMBEDDER, "input": text_for(task_s, number)})
            assert reply.status == 200, reply

        return one


class Through:
    """The router's port."""

    def __init__(self, service: RouterService) -> None:
        self.service = service

    def ask(self, task_s: float):  # type: ignore[no-untyped-def]
        async def one(number: int) -> None:
            body = Body(inputs=(text_for(task_s, number),))
            task = NewTask(
                client=f"client-{number % 4}",
                body=body,
                kind="embedding",
                wants=Wants(model=EMBEDDER),
                options=Options(),
            )
            submitted = await self.service.submit(task)
            async with self.service.follow(submitted.task) as updates:
                end = [update async for update in updates][-1]
            assert isinstance(end, EndUpdate) and end.status.state == "completed", end

        return one


class OverHttp:
    """The OpenAI surface, one token to a chat of that length."""

    def __init__(self, lines: Lines) -> None:
        self.lines = lines

    def ask(self, task_s: float):  # type: ignore[no-untyped-def]
        async def one(number: int) -> None:
            message = {"role": "user", "content": text_for(task_s, number)}
            reply = await self.lines.post(
                "/v1/chat/completions", {"model": CHAT, "max_tokens": 1, "messages": [message]}
            )
            assert reply.status == 200, reply

        return one


async def router(running: AsyncExitStack, folder: Path, sync: Sync) -> tuple[EmbeddedServer, RouterService]:
    """In this process, beside a server of its own."""
    server = EmbeddedServer(folder / "data", sync=sync, port=-1)
    await server.start()
    running.push_async_callback(server.stop)
    bus = await running.enter_async_context(await Bus.connect(server.url, name="router"))
    service = new_router(bus, "router-bench", sync=sync)
    running.push_async_callback(service.close)
    await service.start()
    settle()
    return server, service


@asynccontextmanager
async def fleet(folder: Path, urls: dict[str, str], sync: Sync) -> AsyncIterator[Fleet]:
    config = folder / "headrace.toml"
    # Not local: they are one machine, and each would take the bench itself for somebody else's work there.
    config.write_text(f"[worker]\nslots = {SLOTS}\nlocal = false\n")
    async with AsyncExitStack() as running:
        server, service = await router(running, folder, sync)
        router_url = await running.enter_async_context(serving(create_app(service), "127.0.0.1", 0))
        around = Surroundings(folder / "data", server.url, router_url, config, sync)
        supervisor = Supervisor(lambda _line: None, restart=False)
        running.push_async_callback(supervisor.stop)
        parts = [worker_part(around, BackendAt(name, url, folder=name)) for name, url in urls.items()]
        await supervisor.start([projector_part(around), *parts])
        await dispatching(service)
        await with_workers(service, WORKERS, EMBEDDER)
        assert server.process is not None
        processes = {"client and router": os.getpid(), "nats": server.process.pid}
        processes |= {name: child.pid for name, child in supervisor.children.items()}
        yield Fleet(service, router_url, processes)
