"""A router in this process on a real nats-server, and one that dies at a publish of the test's choice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from schemas.codec import decode
from schemas.events import AnyEvent, Event, Options, Wants
from schemas.work import Body
from services.router.dispatch.permits import UNLIMITED
from services.router.domains import compile_rules
from services.router.port import EndUpdate, NewTask, Update
from services.router.service import RouterService
from services.runtime.bus import Ack, Bus
from services.runtime.clock import Clock, SystemClock
from services.runtime.ids import new_id
from services.runtime.lifecycle import Lifecycle
from services.runtime.settings import Worker as WorkerSettings
from services.runtime.stored import Headers
from services.worker.backends.detect import detect
from services.worker.service import WorkerService
from support.eventually import PATIENCE_S, eventually

MODEL = "m:latest"
ROUTER = "r1"


class SkippingClock:
    """The system's clock, plus whatever time the test lets pass."""

    def __init__(self) -> None:
        self.skipped = 0.0
        self._system = SystemClock()

    def monotonic(self) -> float:
        return self._system.monotonic() + self.skipped

    def unix(self) -> float:
        return self._system.unix()


class DyingBus(Bus):
    """After ``left`` publishes of facts and work items nothing leaves any more: the process that has it is as good as killed.
    The last of them is stored, and its ack lost, unless ``stores_last`` is False."""

    left = 0
    stores_last = True

    def __init__(self, url: str, options: dict[str, Any]) -> None:
        super().__init__(url, options)
        self.dead = asyncio.Event()

    def try_stored(self, *args: Any, **options: Any) -> None:
        """All go the long way, where they are counted."""

    async def publish_stored(
        self, subject: str, data: bytes, msg_id: str, headers: Headers | None = None, *, deadline_s: float = 30.0
    ) -> Ack:
        if subject.startswith(("ev.", "task.q.")):
            self.left -= 1
            if self.left == 0 and self.stores_last:
                await super().publish_stored(subject, data, msg_id, headers, deadline_s=deadline_s)
            if self.left <= 0:
                self.dead.set()
        if self.dead.is_set():
            await asyncio.Event().wait()
        return await super().publish_stored(subject, data, msg_id, headers, deadline_s=deadline_s)


def new_router(bus: Bus, router: str = ROUTER, clock: Clock | None = None, **options: Any) -> RouterService:
    return RouterService(
        bus, router, clock=clock or SystemClock(), new_id=new_id, rules=compile_rules(),
        **{"limits": UNLIMITED} | options,
    )  # fmt: skip


@asynccontextmanager
async def running_router(url: str, router: str = ROUTER, **options: Any) -> AsyncIterator[RouterService]:
    async with await Bus.connect(url, name=router) as bus:
        service = new_router(bus, router, **options)
        try:
            await service.start()
            yield service
        finally:
            await service.close()


@asynccontextmanager
async def doomed_router(
    url: str, publishes: int, *, stores_last: bool
) -> AsyncIterator[tuple[RouterService, DyingBus]]:
    """A router that is killed at its n-th publish; what it had in memory is gone, and nothing is saved."""
    async with await DyingBus.connect(url, name=ROUTER) as bus:
        assert isinstance(bus, DyingBus)
        bus.left, bus.stores_last = publishes, stores_last
        service = new_router(bus)
        try:
            await service.start()
            yield service, bus
        finally:
            await bus.nc.close()
            await service.close()


async def dispatching(service: RouterService, within_s: float = PATIENCE_S) -> None:
    await eventually(lambda: service.readiness().dispatcher, within_s=within_s)


async def started(service: RouterService, task: str) -> None:
    """Until the task's attempt runs somewhere."""

    def runs() -> bool:
        found = service.desk.state.task(task)
        return found is not None and found.live is not None and found.live.started

    await eventually(runs)


async def with_workers(service: RouterService, count: int, model: str = MODEL) -> None:
    """Until this many live workers hold the model."""

    def there() -> bool:
        return sum(view.alive and model in view.models for view in service.fleet().workers.values()) >= count

    await eventually(there)


def question(text: str = "What is the capital of Japan?", *, model: str | None = MODEL, **fields: Any) -> NewTask:
    body = Body(messages=({"role": "user", "content": text},))
    return NewTask(body=body, wants=Wants(model=model), **{"options": Options(max_tokens=4)} | fields)


async def followed(service: RouterService, task: str, within_s: float = PATIENCE_S) -> list[Update]:
    """Every update to the end."""
    async with asyncio.timeout(within_s), service.follow(task) as updates:
        return [update async for update in updates]


async def end_of(service: RouterService, task: str) -> EndUpdate:
    last = (await followed(service, task))[-1]
    assert isinstance(last, EndUpdate)
    return last


async def whole_log(bus: Bus) -> list[AnyEvent]:
    found: list[Any] = []
    for seq in range(1, await bus.last_seq("EVENTS") + 1):
        stored = await bus.stored("EVENTS", seq)
        if stored is not None:
            event = decode(stored.data)
            assert isinstance(event, Event)
            found.append(event)
    return found


@asynccontextmanager
async def mortal_worker(url: str, backend_url: str, worker: str) -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """A real worker and the way to kill it: its connection goes first, so that it can say nothing more."""
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(await Bus.connect(url, name=worker))
        backend = await detect(backend_url)
        stack.push_async_callback(backend.aclose)
        settings = WorkerSettings(name="mortal", heartbeat_s=0.5)
        service = WorkerService(bus, backend, await backend.identify(), worker, settings, {})
        running = asyncio.create_task(service.run(Lifecycle()))

        async def kill() -> None:
            await bus.nc.close()
            running.cancel()
            await asyncio.wait([running])

        stack.push_async_callback(kill)
        yield kill
