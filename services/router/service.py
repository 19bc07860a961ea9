"""The router's shell: follows the log, hears workers, executes decisions, serves the port that HTTP surfaces use.

Answers nothing by itself: ``Desk`` decides, ``Executor`` does, ``Channels`` tells readers. It never touches a backend.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from nats.aio.msg import Msg

from schemas.cells import Cell
from schemas.codec import UnknownEvent, decode
from schemas.errors import BusError, HeadraceError, InvalidEvent
from schemas.events import AnyEvent, Credit, DispatcherElected, TaskCompleted, TaskRouted, WorkerLoad
from schemas.statistics import Statistics
from schemas.subjects import (
    CREDITS_ALL,
    HEARTBEATS_ALL,
    ROUTER_BUCKET,
    SNAPSHOT_KEY,
    body_subject,
    parse_item_subject,
    pulse_subject,
    submit_id,
)
from schemas.work import Answer, TokenChunk, decode_wire, encode_wire
from services.router import intake, past
from services.router.desk import Desk
from services.router.dispatch import engine
from services.router.dispatch.heard import PULSE_S
from services.router.dispatch.permits import Limits
from services.router.dispatch.state import Task
from services.router.domains import Rule
from services.router.election import Election
from services.router.execute import Executor
from services.router.fleet import Fleet
from services.router.follow import Channels
from services.router.port import Busy, NewTask, Readiness, Submitted, TaskStatus, Update
from services.router.view import queue_of, status_of
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.feed import Feed
from services.runtime.logs import logger
from services.runtime.provision import provision
from services.runtime.stored import StoredMessage

log = logger("router")

SNAPSHOT_S = 15.0
"""How often the fold is saved: a restart then folds at most this much of the log, at 100,000 events a second."""
KEEP_CHANNEL_S = 60.0
"""How long an ended task's tokens are kept for a reader that comes late; after that the stored answer serves."""
MAX_DELIVERIES = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.TASKS.*"
RETRY_AFTER_S = 5.0


class RouterService:
    """Implements ``RouterPort``. ``start`` returns when the log has been read; ``close`` leaves nothing running."""

    def __init__(
        self,
        bus: Bus,
        router: str,
        *,
        clock: Clock,
        new_id: Callable[[], str],
        rules: Sequence[Rule],
        limits: Limits,
        slider: float = 1.0,
        grace_s: float = 10.0,
        queue_total: int = 1000,
        queue_client: int = 200,
        sync: str | None = None,
        keep_s: float | None = None,
    ) -> None:
        self._bus, self._router, self._clock, self._new_id = bus, router, clock, new_id
        self._rules, self._grace_s, self._sync, self._keep_s = rules, grace_s, sync, keep_s
        self._queue_total, self._queue_client = queue_total, queue_client
        self.desk = Desk(router, slider=slider, limits=limits, new_id=new_id)
        self.channels = Channels()
        self._election = Election(bus, router)
        self._executor = Executor(
            bus, self.desk.live, now=lambda: self.desk.now, position=lambda: self.desk.state.position, done=self._step
        )
        self._feed: Feed | None = None
        self._stats_feed: Feed | None = None
        self._loops: list[asyncio.Task[None]] = []
        self._background: set[asyncio.Task[None]] = set()
        self._saved = 0
        self._last = 0
        self.unknown_events = 0

    # -- life ----------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        for change in await provision(self._bus, keep_s=self._keep_s):
            log.info(change, action="provisioned")
        await self._restore()
        for subject, hear in (
            (CREDITS_ALL, self._on_credit),
            (HEARTBEATS_ALL, self._on_load),
            ("tok.*.*", self._on_token),
            (pulse_subject(self._router), self._on_pulse),
            (MAX_DELIVERIES, self._on_max_deliveries),
        ):
            await self._bus.listen(subject, hear)
        self._stats_feed = await Feed(self._bus, "KV_stats", on_batch=self._on_cells, last_per_subject=True).start()
        start = self.desk.state.position + 1
        self._feed = await Feed(self._bus, "EVENTS", on_batch=self._on_events, start_seq=start).start()
        await asyncio.gather(self._feed.caught_up.wait(), self._stats_feed.caught_up.wait())
        self._last = self.desk.state.position
        self._loops = [asyncio.create_task(loop()) for loop in (self._pulses, self._elections, self._snapshots)]

    async def close(self) -> None:
        for task in (*self._loops, *self._background):
            task.cancel()
        if tasks := (*self._loops, *self._background):
            await asyncio.wait(tasks)
        await self._executor.close()
        for feed in (self._feed, self._stats_feed):
            if feed is not None:
                await feed.stop()
        if self._bus.connected:
            await self._save()

    async def wait(self) -> None:
        """Until something that must not end has ended; raises its error."""
        assert self._feed is not None and self._stats_feed is not None
        waits = [asyncio.create_task(feed.wait()) for feed in (self._feed, self._stats_feed)]
        done, _ = await asyncio.wait([*waits, *self._loops], return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()
        for task in done:
            task.result()

    # -- what comes in -------------------------------------------------------------------------------------------------

    async def _on_events(self, messages: list[StoredMessage]) -> None:
        events: list[tuple[AnyEvent, int, int]] = []
        for message in messages:
            try:
                event = decode(message.data)
            except InvalidEvent as error:
                self.unknown_events += 1
                log.warning("not an event", action="event_parked", seq=message.seq, error=str(error))
                continue
            if isinstance(event, UnknownEvent):
                self.unknown_events += 1
            elif message.seq > self.desk.state.position:
                events.append((event, message.seq, message.at_us))
        self.desk.fold(events)
        self.desk.passed(messages[-1].seq)
        if self._loops:
            for event, _, _ in events:
                self._tell(event)
            self._step()

    async def _on_cells(self, messages: list[StoredMessage]) -> None:
        for message in messages:
            try:
                self.desk.put_cell(msgspec.json.decode(message.data, type=Cell))
            except msgspec.DecodeError as error:
                log.warning("not a statistics cell", action="cell_skipped", subject=message.subject, error=str(error))

    def _on_credit(self, message: Msg) -> None:
        self.desk.live.hear_credit(msgspec.json.decode(message.data, type=Credit), self.desk.now)
        self.desk.refresh()
        self._step()

    def _on_load(self, message: Msg) -> None:
        load = decode(message.data)
        if isinstance(load, WorkerLoad):
            self.desk.live.hear_load(load, self.desk.now)
            self.desk.refresh()
            self._step()

    def _on_token(self, message: Msg) -> None:
        chunk = decode_wire(message.data, TokenChunk)
        self.desk.live.hear_token((chunk.task, chunk.attempt), self.desk.now)
        self.channels.token(chunk)

    def _on_pulse(self, message: Msg) -> None:
        now = self.desk.clock.beat(self._clock.monotonic())
        for task in self.channels.abandoned(now, self._grace_s):
            found = self.desk.state.tasks.get(task)
            if found is not None and found.submitted.urgency == "interactive":
                self.desk.live.cancels.setdefault(task, "its last reader went away")
        self.channels.forget(now, KEEP_CHANNEL_S)
        self._tell_waiting()
        self._step()

    async def _on_max_deliveries(self, message: Msg) -> None:
        """An item that came back too often: revoke its attempt, whoever holds it."""
        seq = int(msgspec.json.decode(message.data).get("stream_seq", 0))
        item = await self._bus.stored("TASKS", seq)
        if item is not None:
            subject = parse_item_subject(item.subject)
            self.desk.live.revoked.add((subject.task, subject.attempt))
            self._step()

    # -- what goes out -------------------------------------------------------------------------------------------------

    def _step(self) -> None:
        """Look again. Cheap when there is nothing to do; never before the log has been read."""
        if self._loops and self._bus.connected:
            self._executor.start(self.desk.decide(self._clock.unix()))

    def _tell(self, event: AnyEvent) -> None:
        """Readers of the event's task learn of it."""
        task_id = getattr(event, "task", None)
        if task_id is None or self.channels.get(task_id) is None:
            return
        task = self.desk.state.task(task_id)
        if task is None:
            return
        if task.terminal is None:
            self.channels.moved(self._status(task))
        elif event is task.terminal:
            self._spawn(self._end(task))

    async def _end(self, task: Task) -> None:
        answer = None
        if isinstance(task.terminal, TaskCompleted):
            try:
                answer = await self._answer_of(task.terminal)
            except HeadraceError as error:
                log.warning("no answer", action="answer_missing", task=task.submitted.task, error=str(error))
        self.channels.ended(self._status(task), answer, self.desk.now)

    def _tell_waiting(self) -> None:
        """Positions and reasons, to those who read and wait."""
        if not (waiting := self.channels.waiting()):
            return
        shown = {status.task: status for status in self.queue()}
        for task in waiting:
            if task in shown:
                self.channels.moved(msgspec.structs.replace(shown[task], waited_s=None))

    async def _pulses(self) -> None:
        while True:
            await self._bus.send(pulse_subject(self._router), b"")
            await asyncio.sleep(PULSE_S)

    async def _elections(self) -> None:
        while True:
            try:
                if self._election.epoch < 0:
                    if await self._election.campaign(self.desk.now):
                        await self._elected(self._election.epoch)
                elif not await self._election.renew():
                    self.desk.epoch = -1
            except BusError as error:
                log.warning("cannot reach the dispatcher's key", action="election_waits", error=str(error))
            await asyncio.sleep(1.0 if self._election.epoch >= 0 else 0.5)

    async def _elected(self, epoch: int) -> None:
        event = DispatcherElected(
            id=self._new_id(), at=self._clock.unix(), by=self._router, epoch=epoch, router=self._router
        )
        self.desk.epoch = epoch
        await self._bus.publish_event(event, f"elected.{epoch}")
        log.info("dispatcher elected", action="dispatcher_elected", epoch=epoch)

    # -- snapshots -----------------------------------------------------------------------------------------------------

    async def _snapshots(self) -> None:
        while True:
            await asyncio.sleep(SNAPSHOT_S)
            if self.desk.state.position > self._saved and self._election.epoch >= 0:
                await self._save()

    async def _save(self) -> None:
        position = self.desk.state.position
        try:
            await self._bus.kv_put(ROUTER_BUCKET, SNAPSHOT_KEY, engine.snapshot(self.desk.state))
            self._saved = position
        except BusError as error:
            log.warning("no snapshot", action="snapshot_failed", error=str(error))

    async def _restore(self) -> None:
        found = await self._bus.kv_get(ROUTER_BUCKET, SNAPSHOT_KEY)
        if found is None:
            return
        try:
            state = engine.restore(found.data)
        except msgspec.DecodeError as error:
            log.warning("snapshot not readable, folding from the start", action="snapshot_bad", error=str(error))
            return
        if state.position <= await self._bus.last_seq("EVENTS"):
            self.desk.state = state

    # -- the port ------------------------------------------------------------------------------------------------------

    async def submit(self, task: NewTask) -> Submitted:
        body = encode_wire(task.body)
        unix = self._clock.unix()
        asked = intake.read(task, len(body), self._rules, self.desk.fleet(unix))
        self._refuse_full(task.client)
        task_id = self._new_id()
        decision = self.desk.decision(intake.request_from(task, asked), task_id, unix)
        event = intake.submitted(task, asked, task_id, id=self._new_id(), at=unix, by=self._router)
        routed = self.desk.routed(decision, task_id, event.id, unix)
        await self._bus.publish_stored(body_subject(task.client, task_id), body, f"{task_id}.in")
        if decision.choice is not None and self.desk.epoch >= 0:
            self.desk.live.drafts[task_id] = routed
        self.channels.open(task_id)
        self.channels.moved(_accepted(task_id, task, asked))
        await self._bus.publish_event(event, submit_id(task_id))
        return Submitted(task=task_id, domain=asked.domain, language=asked.language, decision=routed)

    def _refuse_full(self, client: str) -> None:
        waiting = [t for t in self.desk.state.tasks.values() if t.terminal is None and t.live is None]
        mine = sum(1 for t in waiting if t.submitted.client == client)
        if mine >= self._queue_client:
            raise Busy(
                f"{client} has {mine} tasks waiting, its limit is {self._queue_client}; try again when some have started",
                retry_after_s=RETRY_AFTER_S,
            )
        if len(waiting) >= self._queue_total:
            raise Busy(
                f"{len(waiting)} tasks are waiting, the limit is {self._queue_total}; try again later",
                retry_after_s=RETRY_AFTER_S,
                status=503,
            )

    async def cancel(self, task: str, reason: str) -> bool:
        found = self.desk.state.task(task)
        known = found is not None and found.terminal is None
        if not known and (self.channels.get(task) is None or found is not None):
            return False
        self.desk.live.cancels[task] = reason
        self._step()
        return True

    async def status(self, task: str) -> TaskStatus | None:
        found = self.desk.state.task(task)
        if found is not None:
            return self._status(found)
        channel = self.channels.get(task)
        if channel is not None and channel.status is not None:
            return channel.status  # accepted a moment ago; its fact is on its way back
        return await past.status(self._bus, task)

    @asynccontextmanager
    async def follow(self, task: str) -> AsyncIterator[AsyncIterator[Update]]:
        found = self.desk.state.task(task)
        channel, queue = self.channels.join(task)
        if found is not None and found.terminal is not None and channel.end is None:
            self._spawn(self._end(found))
        elif found is not None and channel.status is None:
            self.channels.moved(self._status(found))
        elif found is None and channel.status is None and channel.end is None:
            self._spawn(self._recall(task))
        try:
            yield self.channels.read(channel, queue)
        finally:
            self.channels.leave(channel, queue, self.desk.now)

    async def _recall(self, task: str) -> None:
        """A reader of a task that this router has forgotten: its end is all there is to tell."""
        status = await past.status(self._bus, task)
        if status is not None and status.state in ("completed", "failed", "cancelled", "dead"):
            self.channels.ended(status, await past.answer(self._bus, task), self.desk.now)

    async def answer(self, task: str) -> Answer | None:
        found = self.desk.state.task(task)
        if found is not None:
            terminal = found.terminal
            return await self._answer_of(terminal) if isinstance(terminal, TaskCompleted) else None
        return await past.answer(self._bus, task)

    def preview(self, task: NewTask) -> TaskRouted:
        unix = self._clock.unix()
        asked = intake.read(task, 0, self._rules, self.desk.fleet(unix))
        decision = self.desk.decision(intake.request_from(task, asked), "preview", unix)
        return self.desk.routed(decision, "preview", None, unix)

    async def explain(self, task: str) -> tuple[TaskStatus, TaskRouted | None, tuple[Any, ...]] | None:
        found = self.desk.state.task(task)
        if found is None:
            return await past.explain(self._bus, task)
        events = await past.events_at(self._bus, found.seqs)
        routed = next((event for event in events if isinstance(event, TaskRouted)), None)
        return self._status(found), routed, events

    def fleet(self) -> Fleet:
        return self.desk.fleet(self._clock.unix())

    def statistics(self) -> Statistics:
        return self.desk.stats

    def queue(self) -> tuple[TaskStatus, ...]:
        return queue_of(self.desk.state, self.desk.live, self.desk.plan(), int(self._clock.unix() * 1e6))

    def readiness(self) -> Readiness:
        state = self.desk.state
        waiting = sum(1 for t in state.tasks.values() if t.terminal is None and t.live is None)
        elected = self.desk.epoch >= 0 and state.epoch == self.desk.epoch
        caught_up = bool(self._loops)
        connected = self._bus.connected
        why = None if caught_up and connected else "the log is being read" if connected else "no connection to NATS"
        return Readiness(
            ready=caught_up and connected and state.epoch > 0,
            dispatcher=elected,
            epoch=state.epoch,
            position=state.position,
            last=max(self._last, state.position),
            workers=sum(1 for view in self.fleet().workers.values() if view.alive),
            waiting=waiting,
            sync=self._sync,
            reason=why or (None if state.epoch > 0 else "no dispatcher has been elected yet"),
        )

    def _status(self, task: Task) -> TaskStatus:
        return status_of(task, now_us=int(self._clock.unix() * 1e6))

    async def _answer_of(self, completed: TaskCompleted) -> Answer | None:
        return await past.answer_at(self._bus, completed)

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


def _accepted(task: str, new: NewTask, asked: intake.Asked) -> TaskStatus:
    """What is known of a task before its fact has come back from the log."""
    return TaskStatus(
        task=task, state="waiting", client=new.client, kind=new.kind, domain=asked.domain.label, language=asked.language
    )
