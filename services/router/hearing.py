"""Everything that reaches a router, on its way to the desk: the log, statistics, credits, loads, tokens, advisories.

Answers "what came in?". It decodes and hands over; what cannot be read is counted and passed by, never fatal. ``step`` is called
after whatever may change a decision, ``told`` with each new fact.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import lru_cache

import msgspec
from nats.aio.msg import Msg

from schemas.cells import Cell
from schemas.census import Marker
from schemas.codec import UnknownEvent, decode
from schemas.errors import HeadraceError, InvalidEvent
from schemas.events import AnyEvent, Credit, WorkerLoad
from schemas.exchange import origin
from schemas.streams import ADVISORIES
from schemas.subjects import (
    CREDITS_ALL,
    HEARTBEATS_ALL,
    ROUTER_CANCEL,
    STATS_BUCKET,
    is_stats_position,
    parse_item_subject,
)
from schemas.tokens import decode_token
from schemas.work import CancelTask, TokenChunk, decode_wire
from services.router.desk import Desk
from services.router.follow import Channels
from services.runtime.bus import Bus
from services.runtime.feed import Feed
from services.runtime.logs import logger
from services.runtime.stored import StoredMessage

log = logger("router")

PASSED_S = 0.05
"""Behind a backlog nobody is helped by waiting for it."""

_named = lru_cache(maxsize=4096)(decode_token)
"""A worker's id by its token: asked for with each piece of an answer."""


class Hearing:
    """``start`` returns when the log has been read; before that nothing is told and no step is asked for."""

    def __init__(
        self,
        bus: Bus,
        desk: Desk,
        channels: Channels,
        *,
        step: Callable[[], None],
        told: Callable[[AnyEvent], None],
    ) -> None:
        self._bus, self._desk, self._channels, self._step, self._told = bus, desk, channels, step, told
        self._feeds: list[Feed] = []
        self._read = False
        self._folded = asyncio.Event()
        self.unknown_events = 0

    async def start(self) -> None:
        for subject, hear in (
            (CREDITS_ALL, self._on_credit),
            (HEARTBEATS_ALL, self._on_load),
            ("tok.*.*", self._on_token),
            (ROUTER_CANCEL, self._on_cancel),
        ):
            await self._bus.listen(subject, hear, at_once=True)
        advisories = ADVISORIES["name"]
        after = await self._bus.last_seq(advisories) + 1  # older ones: their attempts had their start deadline long ago
        for feed in (
            Feed(self._bus, f"KV_{STATS_BUCKET}", on_batch=self._on_cells, last_per_subject=True),
            Feed(self._bus, advisories, self._on_max_deliveries, start_seq=after),
            Feed(self._bus, "EVENTS", on_batch=self._on_events, start_seq=self._desk.state.position + 1),
        ):
            self._feeds.append(await feed.start())
        await asyncio.gather(*(feed.catch_up() for feed in self._feeds))
        self._desk.cells.settle()
        self._read = True

    async def stop(self) -> None:
        for feed in self._feeds:
            await feed.stop()

    async def wait(self) -> None:
        """Until a feed has ended; raises its error."""
        waits = [asyncio.create_task(feed.wait()) for feed in self._feeds]
        try:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in waits:
                task.cancel()

    async def _on_events(self, messages: list[StoredMessage]) -> None:
        events: list[tuple[AnyEvent, int, int]] = []
        for message in messages:
            try:
                event = decode(message.data)
                _, at_us = origin(message.seq, message.at_us, message.headers)
            except InvalidEvent as error:
                self.unknown_events += 1
                log.warning("not an event", action="event_parked", seq=message.seq, error=str(error))
                continue
            if isinstance(event, UnknownEvent):
                self.unknown_events += 1
            elif message.seq > self._desk.state.position:
                events.append((event, message.seq, at_us))
        self._desk.fold(events)
        self._desk.passed(messages[-1].seq)
        if self._read:
            self._step()
            for event, _, _ in events:
                self._told(event)
        self._folded.set()
        self._folded = asyncio.Event()

    async def passed(self, seq: int) -> None:
        """Until the fold has passed this sequence, which is at once unless there is a backlog; never for long."""
        try:
            async with asyncio.timeout(PASSED_S):
                while self._desk.state.position < seq:
                    await self._folded.wait()
        except TimeoutError:
            pass

    async def _on_cells(self, messages: list[StoredMessage]) -> None:
        for message in messages:
            try:
                if is_stats_position(message.subject):
                    self._marked(msgspec.json.decode(message.data, type=Marker))
                elif message.data:  # a deleted cell has none
                    self._desk.cells.put(msgspec.json.decode(message.data, type=Cell), self._desk.now)
            except msgspec.DecodeError as error:
                log.warning("not a statistics cell", action="cell_skipped", subject=message.subject, error=str(error))

    def _marked(self, marker: Marker) -> None:
        """A batch is whole. Until all batches since the start are, decisions cannot be computed again; they say so."""
        before = self._desk.cells.exact
        exact = self._desk.cells.mark(marker)
        if self._read and exact != before:
            words = "statistics are exact again" if exact else "statistics are not exactly the projector's"
            log.info(words, action="statistics_exact" if exact else "statistics_inexact", position=marker.position)

    def _on_credit(self, message: Msg) -> None:
        self._desk.live.hear_credit(msgspec.json.decode(message.data, type=Credit), self._desk.now)
        self._desk.refresh()
        self._step()

    def _on_load(self, message: Msg) -> None:
        load = decode(message.data)
        if isinstance(load, WorkerLoad):
            self._desk.live.hear_load(load, self._desk.now)
            self._desk.refresh()
            self._step()

    def _on_token(self, message: Msg) -> None:
        chunk = decode_wire(message.data, TokenChunk)
        self._desk.live.hear_token((chunk.task, chunk.attempt), self._desk.now)
        self._channels.token(chunk, _named(message.subject.split(".", 2)[1]))

    def _on_cancel(self, message: Msg) -> None:
        """A reader at some router wants its task cancelled."""
        asked = decode_wire(message.data, CancelTask)
        task = self._desk.state.task(asked.task)
        if task is not None and task.terminal is None:
            self._desk.live.cancels.setdefault(asked.task, asked.reason)
            self._step()

    async def _on_max_deliveries(self, message: StoredMessage) -> None:
        """An item that came back too often: revoke its attempt, whoever holds it."""
        try:
            seq = int(msgspec.json.decode(message.data)["stream_seq"])
            item = await self._bus.stored("TASKS", seq)
            subject = parse_item_subject(item.subject) if item is not None else None
        except (msgspec.DecodeError, KeyError, TypeError, ValueError, HeadraceError) as error:
            # Passed by: the attempt's start deadline or lease ends it just as well.
            log.warning("an advisory is of no use", action="advisory_skipped", seq=message.seq, error=repr(error))
            return
        if subject is not None:
            self._desk.live.revoked.add((subject.task, subject.attempt))
            self._step()
