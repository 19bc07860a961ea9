"""Everything that reaches the benchmarker on its way to the ground: the log, the statistics, heartbeats, the time.

Answers "what came in?". It decodes and hands over; what cannot be read is passed by, never fatal.
"""

from __future__ import annotations

import asyncio

import msgspec
from nats.aio.msg import Msg

from schemas.codec import UnknownEvent, decode
from schemas.errors import BusError, InvalidEvent
from schemas.events import WorkerLoad
from schemas.exchange import origin
from schemas.statistics import Cell
from schemas.subjects import HEARTBEATS_ALL, STATS_BUCKET, heartbeat_subject, is_stats_position
from services.benchmarker.ground import Ground
from services.runtime.bus import Listening
from services.runtime.feed import Feed
from services.runtime.logs import logger
from services.runtime.stored import StoredMessage, unix_us

log = logger("benchmarker")

BACKLOG = 20_000
"""Facts read of the past: what people use these days. Machines are read from the beginning; they say little."""
WORKERS = ("ev.worker.*.*",)
TIME_S = 60.0


class Hearing:
    """``start`` returns when what is stored has been read. ``changed`` is set by whatever comes; ``facts`` counts batches."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._feeds: list[Feed] = []
        self._loads: Listening | None = None
        self.changed = asyncio.Event()
        self.facts = 0

    async def start(self) -> None:
        bus = self._ground.bus
        await self._read_time()
        start = max(1, await bus.last_seq("EVENTS") - BACKLOG + 1)
        if start > 1 and (first := await bus.stored("EVENTS", start)) is not None:
            self._ground.fleet.since_us = first.at_us
        self._loads = await bus.listen(HEARTBEATS_ALL, self._on_load)
        for feed in (
            Feed(bus, "EVENTS", on_batch=self._on_events, filters=WORKERS),
            Feed(bus, f"KV_{STATS_BUCKET}", on_batch=self._on_cells, last_per_subject=True),
            Feed(bus, "EVENTS", on_batch=self._on_events, start_seq=start),
        ):
            self._feeds.append(await feed.start())
            await feed.catch_up()
        await self._read_loads()

    async def stop(self) -> None:
        if self._loads is not None:
            await self._loads.stop()
        for feed in self._feeds:
            await feed.stop()

    async def wait(self) -> None:
        """For ever, or until a feed has ended; raises its error."""
        jobs = [asyncio.create_task(job) for job in (self._keep_time(), *(feed.wait() for feed in self._feeds))]
        try:
            done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
            for job in done:
                job.result()
        finally:
            for job in jobs:
                job.cancel()

    async def _on_events(self, messages: list[StoredMessage]) -> None:
        for message in messages:
            try:
                event = decode(message.data)
                _, at_us = origin(message.seq, message.at_us, message.headers)
            except InvalidEvent:
                continue  # the router and the projector say so
            if not isinstance(event, UnknownEvent):
                self._ground.fleet.apply(event, message.seq, at_us)
        self.facts += 1
        self.changed.set()

    async def _on_cells(self, messages: list[StoredMessage]) -> None:
        for message in messages:
            if message.data and not is_stats_position(message.subject):
                try:
                    self._ground.stats.put(msgspec.json.decode(message.data, type=Cell))
                except msgspec.DecodeError as error:
                    log.warning(
                        "not a statistics cell", action="cell_skipped", subject=message.subject, error=str(error)
                    )

    def _on_load(self, message: Msg) -> None:
        load = decode(message.data)
        if isinstance(load, WorkerLoad):
            self._ground.fleet.hear(load, self._ground.now_us())
            self.changed.set()

    async def _read_loads(self) -> None:
        """Each machine's last heartbeat: who was heard a moment ago did not sleep, only because we just came."""
        for worker in list(self._ground.fleet.machines):
            found = await self._ground.bus.last_for("HEARTBEATS", heartbeat_subject(worker))
            load = decode(found.data) if found is not None else None
            if found is not None and isinstance(load, WorkerLoad):
                self._ground.fleet.hear(load, found.at_us)

    async def _keep_time(self) -> None:
        while True:
            await asyncio.sleep(TIME_S)
            try:
                await self._read_time()
            except BusError as error:
                log.warning("no time from the server", action="time_waits", error=str(error))

    async def _read_time(self) -> None:
        """Facts carry the server's time, and ages are told by it."""
        info = await self._ground.bus.api("STREAM.INFO.EVENTS")
        self._ground.ahead_us = unix_us(info["ts"]) - int(self._ground.clock.monotonic() * 1e6)
