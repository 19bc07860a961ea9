"""A worker's word about itself: credits and heartbeats.

Answers "how much may the router send here, and how loaded is the machine?". A credit is absolute, so a lost one heals with the
next; several that are wanted at once become one. Nothing unreadable is ever a zero.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from schemas.codec import encode
from schemas.errors import BusError
from schemas.events import Credit, RunningAttempt, WorkerLoad
from schemas.subjects import credit_subject, heartbeat_subject
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.ids import new_id
from services.runtime.logs import logger
from services.worker.inventory import Inventory
from services.worker.telemetry.sample import Telemetry

log = logger("worker")


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """What a credit says apart from its envelope."""

    free: int
    running: tuple[RunningAttempt, ...]
    armed: dict[str, int]
    draining: bool
    reasons: tuple[str, ...] = ()
    """Why no work is taken now; empty while it is."""


class Heart:
    """``promise`` gives the present state; both loops run until they are cancelled."""

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        telemetry: Telemetry,
        inventory: Inventory,
        promise: Callable[[], Promise],
        *,
        worker: str,
        boot: str,
        slots: int,
        interval_s: float,
    ) -> None:
        self._bus, self._clock, self._telemetry, self._inventory = bus, clock, telemetry, inventory
        self._promise = promise
        self._worker, self._boot, self._slots, self._interval_s = worker, boot, slots, interval_s
        self._wanted = asyncio.Event()
        self._credits = 0
        self._beats = 0

    def want_credit(self) -> None:
        self._wanted.set()

    async def send_credits(self) -> None:
        """One credit for each wish, or for several."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self._bus.send(credit_subject(self._worker), msgspec.json.encode(self.credit()))

    async def beat(self) -> None:
        """A heartbeat now and each interval after, on a schedule that a slow store does not shift."""
        loop = asyncio.get_running_loop()
        next_at = loop.time()
        while True:
            try:
                await self._store(await self._load())
            except BusError as error:
                log.info("heartbeat not stored", action="heartbeat_lost", error=str(error))
            next_at = max(next_at + self._interval_s, loop.time())
            await asyncio.sleep(next_at - loop.time())

    def credit(self) -> Credit:
        promise = self._promise()
        self._credits += 1
        return Credit(
            worker=self._worker, boot=self._boot, seq=self._credits, slots=self._slots, free=promise.free,
            running=promise.running, armed=promise.armed, draining=promise.draining,
        )  # fmt: skip

    async def _load(self) -> WorkerLoad:
        load = await asyncio.to_thread(self._telemetry.read, self._clock.monotonic())
        unreadable = dict(load.unreadable)
        if not self._inventory.up:
            unreadable["backend_up"] = self._inventory.reason
        resident = self._inventory.resident()
        if resident is None:
            unreadable["resident"] = self._inventory.reason or "the backend does not say"
        if reasons := self._promise().reasons:
            unreadable["credit.free"] = "takes no work: " + ", ".join(reasons)
        self._beats += 1
        return WorkerLoad(
            id=new_id(), at=self._clock.unix(), by=self._worker, worker=self._worker, boot=self._boot, seq=self._beats,
            uptime_s=self._clock.monotonic(), interval_s=self._interval_s, cpu_use=load.cpu_use,
            cpu_count=load.cpu_count, cpu_pressure=load.cpu_pressure, ram_total_bytes=load.ram_total_bytes,
            ram_available_bytes=load.ram_available_bytes, gpus=load.gpus, others_use=load.others_use,
            others_age_s=load.others_age_s, on_battery=load.on_battery, backend_up=self._inventory.up,
            resident=resident, credit=self.credit(), unreadable=unreadable, loaded=self._inventory.loaded(),
        )  # fmt: skip

    async def _store(self, load: WorkerLoad) -> None:
        """A late heartbeat says nothing true: it is tried for one interval only."""
        await self._bus.publish_stored(
            heartbeat_subject(self._worker), encode(load), load.id, deadline_s=self._interval_s
        )
