"""A worker under test on a real nats-server, with the test in the router's place.

The bench makes consumers, says hello, releases items and hears everything; it decides nothing by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

import msgspec
from nats.aio.msg import Msg

from schemas import codec
from schemas.events import Credit, Event, Options, WorkerLoad, WorkerReported
from schemas.streams import group_consumer, lane_consumer
from schemas.subjects import (
    CREDITS_ALL,
    HEARTBEATS_ALL,
    body_subject,
    control_subject,
    group_durable,
    item_id,
    item_subject,
)
from schemas.work import Body, Control, TokenChunk, WorkItem, decode_wire, encode_wire
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.lifecycle import Lifecycle
from services.runtime.provision import ensure_consumer
from services.runtime.settings import Worker as WorkerSettings
from services.worker.backends.detect import detect
from services.worker.backends.port import Backend
from services.worker.service import WorkerService
from services.worker.telemetry.sample import Telemetry
from support.eventually import PATIENCE_S, eventually

E = TypeVar("E", bound=Event)
WORKER = "w-bench"
CLIENT = "me"
CHAT = Body(messages=({"role": "user", "content": "What is the capital of Japan?"},))


class Bench:
    """``credits``, ``loads`` and ``tokens`` are all that was heard so far."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self.credits: list[Credit] = []
        self.loads: list[WorkerLoad] = []
        self.tokens: list[TokenChunk] = []
        self.armable: dict[str, list[str]] = {}

    async def start(self) -> None:
        await self.bus.listen(CREDITS_ALL, lambda m: self.credits.append(msgspec.json.decode(m.data, type=Credit)))
        await self.bus.listen(HEARTBEATS_ALL, self._load)
        await self.bus.listen("tok.>", lambda m: self.tokens.append(decode_wire(m.data, TokenChunk)))

    def _load(self, message: Msg) -> None:
        load = codec.decode(message.data)
        assert isinstance(load, WorkerLoad)
        self.loads.append(load)
        if load.credit is not None:
            self.credits.append(load.credit)

    async def confirm(self, model: str, *, capability: str = "cpu_inference", worker: str = WORKER) -> None:
        """Create the model's group and the worker's lane, and say so."""
        group = group_consumer(capability, model, cap=4, members=4)
        for config in (group, lane_consumer(worker, slots=4)):
            await ensure_consumer(self.bus, config)
            armable = self.armable.setdefault(worker, [])
            if config["durable_name"] not in armable:
                armable.append(config["durable_name"])
        await self.hello(worker)

    async def hello(self, worker: str = WORKER) -> None:
        await self.tell(Control(command="hello", router="r", armable=tuple(self.armable.get(worker, ()))), worker)

    async def tell(self, control: Control, worker: str = WORKER) -> None:
        await self.bus.send(control_subject(worker), encode_wire(control))

    async def ready(self, *, free: int = 1, worker: str = WORKER) -> Credit:
        """A credit of this many free slots whose pulls cover all that was confirmed; says hello until then, as routers do."""

        async def look() -> Credit | None:
            last = next((c for c in reversed(self.credits) if c.worker == worker), None)
            if last is not None and last.free == free and set(self.armable[worker]) <= set(last.armed):
                return last
            await self.hello(worker)
            return None

        return await eventually(look, every_s=0.05)  # type: ignore[return-value]

    async def release(
        self, task: str, model: str, *, attempt: int = 1, lane: str = "any", body: Body = CHAT, **fields: Any
    ) -> int:
        """Store the body and the item; the item's sequence."""
        subject = body_subject(CLIENT, task)
        await self.bus.publish_stored(subject, encode_wire(body), f"{task}.body")
        fields = {"capability": "cpu_inference", "options": Options(max_tokens=8)} | fields
        item = WorkItem(
            task=task,
            attempt=attempt,
            epoch=1,
            model=model,
            lane=lane,
            domain="general",
            client=CLIENT,
            body=subject,
            **fields,
        )
        where = item_subject(item.capability, model, lane, task, attempt)
        return (await self.bus.publish_stored(where, encode_wire(item), item_id(task, attempt))).seq

    async def events(self) -> list[Event]:
        """The whole log."""
        found: list[Event] = []
        for seq in range(1, await self.bus.last_seq("EVENTS") + 1):
            stored = await self.bus.stored("EVENTS", seq)
            if stored is not None:
                event = codec.decode(stored.data)
                assert isinstance(event, Event)
                found.append(event)
        return found

    async def said(self, kind: type[E], task: str | None = None) -> list[E]:
        return [e for e in await self.events() if isinstance(e, kind) and getattr(e, "task", None) == task]

    async def until_said(self, kind: type[E], task: str | None = None, *, within_s: float = PATIENCE_S) -> E:
        async def look() -> E | None:
            return next(iter(await self.said(kind, task)), None)

        return await eventually(look, within_s=within_s)  # type: ignore[return-value]

    async def unacked(self, model: str, capability: str = "cpu_inference") -> tuple[int, int]:
        """(waiting, in hand) of the model's group."""
        info = await self.bus.api(f"CONSUMER.INFO.TASKS.{group_durable(capability, model)}")
        return int(info["num_pending"]), int(info["num_ack_pending"])


@asynccontextmanager
async def running_worker(
    natsd_url: str,
    backend_url: str,
    *,
    worker: str = WORKER,
    models: dict[str, Any] | None = None,
    clock: Clock | None = None,
    telemetry: Telemetry | None = None,
    **settings: Any,
) -> AsyncIterator[tuple[WorkerService, Lifecycle]]:
    """A worker in this process on a connection of its own; drained at the end."""
    async with AsyncExitStack() as stack:
        own = WorkerSettings(name="bench", heartbeat_s=settings.pop("heartbeat_s", 0.5), **settings)
        bus = await stack.enter_async_context(await Bus.connect(natsd_url, name=worker))
        backend: Backend = await detect(backend_url)
        stack.push_async_callback(backend.aclose)
        service = WorkerService(
            bus, backend, await backend.identify(), worker, own, models or {}, clock=clock, telemetry=telemetry
        )
        life = Lifecycle()
        task = asyncio.create_task(service.run(life))
        try:
            yield service, life
        finally:
            life.drain("the test is over")
            async with asyncio.timeout(PATIENCE_S):
                await task


def models_of(report: WorkerReported) -> dict[str, Any]:
    return {model.name: model for model in report.models}
