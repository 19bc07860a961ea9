"""A whole Headrace as real processes, for proofs: kill any part, freeze any part, bring it back, read the log.

Answers "what does the log say after that?". Parts are called ``nats``, ``router``, ``projector`` and ``worker NAME``. Nothing
is brought back by itself. The llama.cpp fleet is ``DemoFleet``; ``stub_fleet`` has the same parts over stub servers.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx

from schemas.codec import decode
from schemas.events import AnyEvent, AttemptFailed, Event, TaskStarted, Terminal
from services.cli.fleet_process import DemoFleet
from services.cli.parts import BackendAt
from services.cli.stack import Stack
from services.router.dispatch.permits import UNLIMITED
from services.runtime.bus import Bus
from services.runtime.feed import Feed
from services.runtime.server import Sync
from services.runtime.stored import StoredMessage
from simulation.check import check_log
from support.eventually import PATIENCE_S, eventually
from support.history import Entry
from support.stub_server import Pace, StubServer

Json = dict[str, Any]
E = TypeVar("E", bound=Event)
ENDS = frozenset({"completed", "failed", "cancelled", "dead"})
MODEL = "stub"


class Proof:
    """One running fleet and an HTTP client of its router."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.http = httpx.AsyncClient(base_url=stack.router_url, timeout=PATIENCE_S, trust_env=False)

    # -- tasks -------------------------------------------------------------------------------------------------------------

    async def submit(self, prompt: str = "Why is the sky blue?", *, max_tokens: int = 8, **fields: Any) -> str:
        """An accepted task's id. ``worker`` and ``domain`` are constraints."""
        names = ("worker", "domain", "urgency", "slider")
        constraints = {"max_tokens": max_tokens} | {name: fields.pop(name) for name in names if name in fields}
        answer = await self.http.post("/route", json={"prompt": prompt, "constraints": constraints, **fields})
        answer.raise_for_status()
        return str(answer.json()["task"])

    async def task(self, task: str) -> Json:
        answer = await self.http.get(f"/task/{task}")
        answer.raise_for_status()
        body: Json = answer.json()
        return body

    async def ended(self, task: str, *, within_s: float = PATIENCE_S) -> Json:
        """``GET /task/{id}`` once it has ended, asked again while the router is away."""

        async def look() -> Json | None:
            try:
                body = await self.task(task)
            except httpx.HTTPError:
                return None
            return body if body["status"]["state"] in ENDS else None

        return await eventually(look, within_s=within_s, every_s=0.05) or {}

    async def all_ended(self, tasks: Iterable[str], *, within_s: float = 2 * PATIENCE_S) -> list[Json]:
        return list(await asyncio.gather(*(self.ended(task, within_s=within_s) for task in tasks)))

    async def until(self, task: str, state: str, *, within_s: float = PATIENCE_S) -> Json:
        async def look() -> Json | None:
            status: Json = (await self.task(task))["status"]
            return status if status["state"] == state else None

        return await eventually(look, within_s=within_s, every_s=0.01) or {}

    async def workers(self) -> dict[str, Json]:
        """By name."""
        return {worker["name"]: worker for worker in (await self.http.get("/workers")).json()["workers"]}

    async def quiet(self, *, within_s: float = PATIENCE_S) -> None:
        """Until every worker is ready with all its slots free."""

        async def look() -> bool:
            workers = (await self.workers()).values()
            return bool(workers) and all(w["state"] == "ready" and w["free"] == w["slots"] for w in workers)

        await eventually(look, within_s=within_s)

    # -- parts -------------------------------------------------------------------------------------------------------------

    def pid(self, part: str) -> int:
        if part != "nats":
            return self.stack.supervisor.children[part].pid
        assert self.stack.nats.process is not None
        return self.stack.nats.process.pid

    async def kill(self, part: str) -> None:
        """kill -9, and gone."""
        if part == "nats":
            await self.stack.nats.kill()
            return
        os.kill(self.pid(part), signal.SIGKILL)
        process = self.stack.supervisor.children[part].process
        assert process is not None
        await process.wait()

    async def back(self, part: str) -> None:
        if part == "nats":
            await self.stack.nats.start()
        else:
            await self.stack.supervisor.restart(part)

    @contextmanager
    def frozen(self, part: str) -> Iterator[None]:
        pid = self.pid(part)
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    # -- the log -----------------------------------------------------------------------------------------------------------

    async def log(self) -> list[Entry]:
        """All events so far."""
        async with await Bus.connect(self.stack.nats_url, name="proof") as bus:
            return await read_log(bus)

    async def said(self, kind: type[E], task: str) -> list[tuple[int, E]]:
        """(server time in microseconds, event) of each such fact about the task."""
        return [(e.at_us, e.event) for e in await self.log() if isinstance(e.event, kind) and of_task(e.event) == task]

    async def until_said(
        self, kind: type[E], task: str, *, within_s: float = PATIENCE_S, nth: int = 1
    ) -> tuple[int, E]:
        """The nth such fact about the task. The log is short, so it is simply read again."""
        async with await Bus.connect(self.stack.nats_url, name="proof") as bus:

            async def look() -> list[tuple[int, E]]:
                log = await read_log(bus)
                found = [(e.at_us, e.event) for e in log if isinstance(e.event, kind) and of_task(e.event) == task]
                return found[nth - 1 :]

            return (await eventually(look, within_s=within_s, every_s=0.1))[0]


async def read_log(bus: Bus) -> list[Entry]:
    entries: list[Entry] = []

    async def take(messages: list[StoredMessage]) -> None:
        for message in messages:
            event = decode(message.data)
            assert isinstance(event, Event)
            entries.append(Entry(message.seq, message.at_us, event))

    async with Feed(bus, "EVENTS", on_batch=take) as feed:
        async with asyncio.timeout(PATIENCE_S):
            await feed.caught_up.wait()
    return entries


def of_task(event: Event) -> str | None:
    return getattr(event, "task", None)


def check_promises(log: Iterable[Entry], tasks: Iterable[str]) -> dict[str, int]:
    """Each task has exactly one terminal fact, and the log keeps every promise of ``check_log``; the counts by kind."""
    events: list[AnyEvent] = [entry.event for entry in log]  # type: ignore[misc]
    violations, counts = check_log(events, UNLIMITED)
    assert violations == []
    ended = {of_task(event) for event in events if isinstance(event, Terminal)}
    assert [task for task in tasks if task not in ended] == []
    return counts


def losses(log: Iterable[Entry]) -> list[AttemptFailed]:
    """Attempts that were given up although they had started."""
    started = {(e.event.task, e.event.attempt) for e in log if isinstance(e.event, TaskStarted)}
    failed = [e.event for e in log if isinstance(e.event, AttemptFailed)]
    return [event for event in failed if (event.task, event.attempt) in started]


@asynccontextmanager
async def stub_fleet(
    data: Path,
    machines: Mapping[str, Pace] | Mapping[str, Mapping[str, Pace]],
    *,
    sync: Sync = "10s",
    slots: int = 1,
    settings: str = "",
) -> AsyncIterator[tuple[Proof, dict[str, StubServer]]]:
    """Machine name -> its pace, or its models with theirs. ``settings`` is TOML for every part."""
    config = data / "headrace.toml"
    config.write_text(f"[worker]\nslots = {slots}\n{settings}")
    async with AsyncExitStack() as running:
        servers = {}
        for name, models in machines.items():
            paces = {MODEL: models} if isinstance(models, Pace) else models
            servers[name] = await running.enter_async_context(StubServer(paces))
        backends = [BackendAt(name, server.url, folder=name) for name, server in servers.items()]
        stack = Stack(data / "fleet", backends=backends, sync=sync, config=config, restart=False)
        await running.enter_async_context(stack)
        proof = Proof(stack)
        running.push_async_callback(proof.http.aclose)
        await proof.quiet()
        yield proof, servers


@asynccontextmanager
async def llama_fleet(data: Path) -> AsyncIterator[tuple[Proof, DemoFleet]]:
    """The demo's two machines; each has been measured once, as in the demo."""
    async with DemoFleet(data, restart=False) as fleet:
        proof = Proof(fleet.stack)
        try:
            await proof.quiet()
            await proof.all_ended([await proof.submit(max_tokens=16, worker=name) for name in fleet.machines])
            await eventually(lambda: measured(proof, 2))
            await proof.quiet()
            yield proof, fleet
        finally:
            await proof.http.aclose()


async def measured(proof: Proof, tasks: int) -> bool:
    """Whether the router's statistics hold so many executions."""
    rows = (await proof.http.get("/stats")).json()["rows"]
    return bool(sum(row["ok_n"] + row["fail_n"] for row in rows) >= tasks)


async def passed(seconds: float) -> None:
    """Returns after this long: for proofs in which the time itself is the point."""
    until = time.monotonic() + seconds
    await eventually(lambda: time.monotonic() >= until, within_s=2 * seconds)
