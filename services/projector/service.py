"""The projector's shell: follows EVENTS and HEARTBEATS, keeps the store, publishes the cells, answers.

Answers "who does what, when?". The store has one thread, and nothing else touches it. Rules are in ``rows`` and ``tables``; this
file only moves messages. An unusable file is opened again, healed if need be, and followed from wherever it then stands.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from schemas.census import Census
from schemas.errors import BusError, StoreError
from schemas.statistics import Cell, key_of
from schemas.subjects import (
    PROJECTOR_AS_OF,
    PROJECTOR_JUDGES,
    PROJECTOR_STATUS,
    PROJECTOR_TASK,
    STATS_BUCKET,
    STATS_POSITION_KEY,
    stats_key,
)
from services.projector.answers import answer
from services.projector.heartbeats import minutes
from services.projector.store import Store
from services.runtime.bus import STREAM_NOT_FOUND, Bus
from services.runtime.feed import Feed
from services.runtime.lifecycle import Lifecycle
from services.runtime.logs import logger
from services.runtime.stored import StoredMessage

log = logger("projector")

T = TypeVar("T")

BATCH = 10_000
"""Messages per pull: larger transactions cost less per row, and two pulls of 1 KiB events stay far below max_pending."""
REFRESH_S = 0.25
"""How long a sample waits at most before its cell is recomputed and sent: well below one task's time."""
REPLAY_REFRESH_S = 60.0
"""The same while a replay runs, when every cell is touched by every batch."""
PUBLISH_AT_ONCE = 500
REST = 20
"""Snapshots and recomputations rest 20 times as long as they took: each is at most 5 % of the time, however long the log.
Both count their CPU time [80 ms of a recomputation are the query's own, with two samples]: by the clock, 2 s on a busy machine
became 40 s in which nobody learned anything, and a snapshot that had waited behind a replay was a minute old."""
AGAIN_S = 0.5
AGAIN_MOST_S = 30.0


class Projector:
    """``await Projector(bus, store, …).run(life)`` returns after a drain, with everything committed and a last snapshot."""

    def __init__(self, bus: Bus, store: Store, *, snapshot_s: float, batch_s: float, heartbeats_s: float) -> None:
        self._bus = bus
        self._store = store
        self._snapshot_s = snapshot_s
        self._batch_s = batch_s
        self._heartbeats_s = heartbeats_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._behind = True
        self._unsent = True
        self._refresh_took_s = 0.0
        self._census = Census()
        self._marked = Census().marker(0)  # of an empty log nothing need be said

    async def run(self, life: Lifecycle) -> None:
        await self._on_store(Store.open)
        try:
            again_s = AGAIN_S
            while not life.draining.is_set():
                started = asyncio.get_running_loop().time()
                try:
                    await self._follow(life)
                except StoreError as error:
                    log.error("the store failed, opening it again", action="store_failed", error=str(error))
                    if asyncio.get_running_loop().time() - started > AGAIN_MOST_S:
                        again_s = AGAIN_S
                    await _until(life, again_s)
                    again_s = min(2 * again_s, AGAIN_MOST_S)
                    await self._on_store(Store.reopen)
            await self._finish()
        finally:
            await self._on_store(Store.close)
            self._thread.shutdown()

    async def _on_store(self, work: Callable[[Store], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._store)

    # -- following ---------------------------------------------------------------------------------------------------------

    async def _follow(self, life: Lifecycle) -> None:
        """Until asked to go (returns), or until something fails (raises)."""
        if not await self._streams_ready(life):
            return
        await self._check_positions()
        events = Feed(
            self._bus,
            "EVENTS",
            on_batch=self._take_events,
            start_seq=self._store.position + 1,
            batch=BATCH,
            linger_s=self._batch_s,
        )
        beats = Feed(
            self._bus,
            "HEARTBEATS",
            on_batch=self._take_heartbeats,
            start_seq=self._store.heartbeats + 1,
            batch=BATCH,
            linger_s=self._heartbeats_s,
        )
        questions = [
            await self._bus.listen(
                subject, lambda message: answer(self._bus, self._on_store, message), queue="projector"
            )
            for subject in (PROJECTOR_TASK, PROJECTOR_STATUS, PROJECTOR_AS_OF, PROJECTOR_JUDGES)
        ]
        async with events, beats:
            jobs = [
                asyncio.create_task(job, name=f"projector {name}")
                for name, job in (
                    ("events", events.wait()),
                    ("heartbeats", beats.wait()),
                    ("cells", self._keep_cells(events)),
                    ("snapshots", self._keep_snapshots()),
                    ("ready", self._say_ready(events, life)),
                    ("draining", life.until_draining()),
                )
            ]
            try:
                await _first_to_end(jobs)
            finally:
                for question in questions:
                    await question.stop()

    async def _streams_ready(self, life: Lifecycle) -> bool:
        """Wait for the router to make the streams; False when asked to go meanwhile."""
        said = False
        while not life.draining.is_set():
            try:
                for stream in ("EVENTS", "HEARTBEATS", f"KV_{STATS_BUCKET}"):
                    await self._bus.last_seq(stream)
                return True
            except BusError as error:
                if error.code != STREAM_NOT_FOUND:
                    log.warning("streams not readable yet", action="streams_wait", error=str(error))
                elif not said:
                    log.info("waiting for a router to make the streams", action="streams_wait", error=str(error))
                    said = True
            await _until(life, AGAIN_S)
        return False

    async def _check_positions(self) -> None:
        """A position beyond the log's end is of another log; cells that the bucket lacks must be sent again."""
        last = await self._bus.last_seq("EVENTS")
        if last < self._store.position:
            reason = f"EVENTS ends at {last}, before its position {self._store.position}: another log"
            await self._on_store(lambda store: store.start_over(reason))
        if await self._bus.last_seq("HEARTBEATS") < self._store.heartbeats:
            await self._on_store(Store.forget_heartbeats)
        known = await self._on_store(Store.cell_positions)
        self._census, self._marked = Census(), Census().marker(0)
        for key, last_seq in known:
            self._census.put(key, last_seq)
        bucket = await self._bus.api(f"STREAM.INFO.KV_{STATS_BUCKET}")
        if int(bucket["state"]["messages"]) < len(known) + 1:  # the marker is one more
            await self._on_store(lambda store: store.mark_published(0))

    async def _take_events(self, messages: list[StoredMessage]) -> None:
        await self._on_store(lambda store: store.apply(messages))

    async def _take_heartbeats(self, messages: list[StoredMessage]) -> None:
        await self._on_store(lambda store: store.apply_heartbeats(minutes(messages), messages[-1].seq))

    async def _say_ready(self, events: Feed, life: Lifecycle) -> None:
        await events.caught_up.wait()
        self._behind = False
        life.ready()
        await asyncio.Event().wait()

    # -- publishing --------------------------------------------------------------------------------------------------------

    async def _keep_cells(self, events: Feed) -> None:
        self._behind = not events.caught_up.is_set()
        loop = asyncio.get_running_loop()
        ended = loop.time() - REPLAY_REFRESH_S
        while True:
            rest_s = max(REST * self._refresh_took_s, REPLAY_REFRESH_S if self._behind else REFRESH_S)
            if loop.time() - ended >= rest_s and (self._unsent or self._store.stale):
                try:
                    await self._publish_cells()
                except BusError as error:
                    log.warning("cells not sent yet", action="cells_wait", error=str(error))
                ended = loop.time()
            await asyncio.sleep(REFRESH_S)

    async def _publish_cells(self) -> None:
        """Recompute what was touched and send it, then the position that all cells reach; sent again after a crash, which
        changes nothing. Readers apply a batch when its marker has come."""
        self._unsent = True
        self._refresh_took_s = await self._on_store(lambda store: cpu_s_of(store.refresh))
        cells, position = await self._on_store(Store.unpublished)
        for start in range(0, len(cells), PUBLISH_AT_ONCE):
            await asyncio.gather(*(self._publish(cell) for cell in cells[start : start + PUBLISH_AT_ONCE]))
        for cell in cells:
            self._census.put(key_of(cell), cell.last_seq)
        marker = self._census.marker(position)
        if marker != self._marked:
            await self._bus.kv_put(STATS_BUCKET, STATS_POSITION_KEY, msgspec.json.encode(marker))
            self._marked = marker
        await self._on_store(lambda store: store.mark_published(position))
        self._unsent = False

    async def _publish(self, cell: Cell) -> None:
        key = stats_key(cell.model, cell.domain, cell.worker)
        await self._bus.kv_put(STATS_BUCKET, key, msgspec.json.encode(cell))

    async def _keep_snapshots(self) -> None:
        while True:
            rest_s = await self._on_store(snapshot_and_rest)
            await asyncio.sleep(max(self._snapshot_s, rest_s))

    async def _finish(self) -> None:
        """What is committed is published once more before leaving."""
        try:
            await self._publish_cells()
        except BusError as error:
            log.warning("cells left for the next start", action="cells_wait", error=str(error))
        await self._on_store(Store.snapshot)


def snapshot_and_rest(store: Store) -> float:
    """Seconds that the next one is to wait: as long as the files took at least, so that half of the disk's time is others'."""
    began = time.monotonic()
    return max(REST * cpu_s_of(store.snapshot), time.monotonic() - began)


def cpu_s_of(work: Callable[[], object]) -> float:
    """What this process and its children that ended meanwhile (``cp`` makes the copies) spent on it. Ask in the store's thread:
    what waits for that is not the work's."""
    spent_s = _cpu_s()
    work()
    return _cpu_s() - spent_s


def _cpu_s() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


async def _first_to_end(jobs: list[asyncio.Task[None]]) -> None:
    """When one ends, end the others; raise what it raised."""
    try:
        done, _ = await asyncio.wait(jobs, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for job in jobs:
            job.cancel()
        await asyncio.wait(jobs)
    for job in done:
        job.result()


async def _until(life: Lifecycle, seconds: float) -> None:
    """Wait, unless asked to go."""
    try:
        async with asyncio.timeout(seconds):
            await life.until_draining()
    except TimeoutError:
        pass
