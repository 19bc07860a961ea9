"""What the rest of the fleet said: reports, residency, statistics.

Answers "who else holds this model, how fast are they, and who had which name first?". It only listens.
Without statistics a worker still works: all holders then pull alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

import msgspec
from nats.aio.msg import Msg

from schemas import codec
from schemas.cells import Cell
from schemas.errors import BusError, InvalidEvent
from schemas.events import WorkerLeft, WorkerLoad, WorkerReported
from schemas.statistics import Statistics
from schemas.subjects import HEARTBEATS_ALL, STATS_BUCKET, is_stats_position
from services.runtime.bus import Bus, Listening
from services.runtime.clock import Clock
from services.runtime.feed import Feed
from services.runtime.logs import logger
from services.runtime.stored import StoredMessage
from services.worker.backends.names import Known
from services.worker.priority import Holder

log = logger("worker")

SILENT_S = 15.0
"""Three missed heartbeats: such a holder is no rival for the next task."""
STREAMS_S = 0.5
"""Between two looks for the streams at the start."""
REPORTS = ("ev.worker.reported.>", "ev.worker.left.>")

_cell = msgspec.json.Decoder(Cell)


class Peers:
    """``on_reports`` is called when a name may have to change, ``on_measured`` when a priority may."""

    def __init__(
        self,
        bus: Bus,
        worker: str,
        clock: Clock,
        on_reports: Callable[[], None],
        on_measured: Callable[[], None] = lambda: None,
    ) -> None:
        self.statistics = Statistics()
        self._bus, self._worker, self._clock = bus, worker, clock
        self._on_reports, self._on_measured = on_reports, on_measured
        self._reports: dict[str, tuple[int, float, WorkerReported]] = {}
        self._loads: dict[str, tuple[float, WorkerLoad]] = {}
        self._feeds: list[Feed] = []
        self._listening: Listening | None = None

    async def meet(self) -> None:
        """``start``, as soon as it can be: a router makes the streams, and a worker that was first waits for one."""
        said = ""
        while True:
            try:
                return await self.start()
            except BusError as error:
                if str(error) != said:
                    log.warning("no streams yet; is a router running?", action="no_streams", error=str(error))
                said = str(error)
                await self.stop()
                await asyncio.sleep(STREAMS_S)

    async def start(self) -> None:
        """The reports are all read on return, so that the first names are right; statistics come when they come."""
        self._listening = await self._bus.listen(HEARTBEATS_ALL, self._heard)
        reports = Feed(self._bus, "EVENTS", self._reported, filters=REPORTS, last_per_subject=True)
        cells = Feed(self._bus, f"KV_{STATS_BUCKET}", self._measured, last_per_subject=True)
        self._feeds = [reports, cells]
        for feed in self._feeds:
            await feed.start()
        await reports.catch_up()

    async def stop(self) -> None:
        if self._listening is not None:
            await self._listening.stop()
        for feed in self._feeds:
            await feed.stop()

    def known(self, own_digests: Collection[str | None]) -> Known:
        """The claims on names in the log's order, our own of models that we still hold among them."""
        claims = [
            (model.name, model.digest)
            for _, _, report in sorted(self._reports.values(), key=lambda entry: entry[0])
            for model in report.models
            if report.worker != self._worker or model.digest in own_digests
        ]
        return Known.from_claims(claims)

    def holders(self) -> dict[str, list[Holder]]:
        """By canonical model name, whoever else holds it and was heard lately. A report that was just read counts as heard:
        its worker's next heartbeat may be 5 s away, and until then the slowest machine would pull like the fastest."""
        now = self._clock.monotonic()
        found: dict[str, list[Holder]] = {}
        for worker, (_, read_at, report) in self._reports.items():
            heard_at, load = self._loads.get(worker, (read_at, None))
            if worker == self._worker or now - heard_at > SILENT_S:
                continue
            for model in report.models:
                resident = model.name in load.resident if load and load.resident is not None else model.resident
                found.setdefault(model.name, []).append(
                    Holder(worker=worker, model_bytes=model.bytes, resident=resident)
                )
        return found

    async def _reported(self, message: StoredMessage) -> None:
        try:
            event = codec.decode(message.data)
        except InvalidEvent as error:
            log.warning("a report is not readable", action="bad_report", seq=message.seq, error=str(error))
            return
        if isinstance(event, WorkerLeft):
            self._reports.pop(event.worker, None)
        elif isinstance(event, WorkerReported):
            self._reports[event.worker] = (message.seq, self._clock.monotonic(), event)
            if event.worker != self._worker:
                self._on_reports()

    async def _measured(self, message: StoredMessage) -> None:
        if not message.data or (message.headers is not None and "KV-Operation" in message.headers):
            return
        if is_stats_position(message.subject):
            return  # a priority needs no more than the cells that there are
        try:
            self.statistics.put(_cell.decode(message.data))
            self._on_measured()
        except msgspec.DecodeError as error:
            log.warning("a statistics cell is not readable", action="bad_cell", seq=message.seq, error=str(error))

    def _heard(self, message: Msg) -> None:
        try:
            event = codec.decode(message.data)
        except InvalidEvent:
            return
        if isinstance(event, WorkerLoad):
            self._loads[event.worker] = (self._clock.monotonic(), event)
