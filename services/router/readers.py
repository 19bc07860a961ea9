"""Those who read tasks at this router: told of each fact, caught up when they come late, missed when they are gone.

Answers "what does who reads now learn?". What a reader lacks of an answer it gets from the stored one. It decides nothing; a task
that its last reader left is only put among the wishes to cancel.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec

from schemas.errors import HeadraceError, InvalidEvent
from schemas.events import AnyEvent, TaskCompleted, Terminal
from schemas.work import Answer
from services.router import past
from services.router.desk import Desk
from services.router.dispatch.state import Task
from services.router.follow import Channels
from services.router.port import TaskStatus, Update
from services.router.rises import is_news
from services.router.view import status_of
from services.runtime.answers import Answer as Reply
from services.runtime.bus import Bus
from services.runtime.logs import logger

log = logger("router")

KEEP_CHANNEL_S = 60.0
"""How long an ended task's tokens are kept for a reader that comes late; after that the stored answer serves."""
PLACES_S = 1.0
"""Nobody reads places faster, and a plan for a long queue is not free."""
ENDED = ("completed", "failed", "cancelled", "dead")


class Readers:
    """``close`` ends what is being looked up for them."""

    def __init__(self, bus: Bus, desk: Desk, channels: Channels, *, unix: Callable[[], float], grace_s: float) -> None:
        self._bus, self._desk, self._channels, self._unix, self._grace_s = bus, desk, channels, unix, grace_s
        self._lookups: set[asyncio.Task[None]] = set()
        self._placed: dict[str, tuple[TaskStatus, float]] = {}
        self._looked_at = -PLACES_S
        self._closed = False

    async def close(self) -> None:
        self._closed = True
        for task in self._lookups:
            task.cancel()
        if self._lookups:
            await asyncio.wait(self._lookups)

    def status(self, task: Task) -> TaskStatus:
        """With the place that its readers were last told, if it still waits."""
        status = status_of(task, now_us=int(self._unix() * 1e6))
        placed = self._placed.get(status.task)
        if placed is None or status.state != "waiting":
            return status
        told, _ = placed
        return msgspec.structs.replace(
            status,
            position=told.position,
            reason=told.reason,
            eta_s=told.eta_s,
            rises=told.rises,
            model=told.model,
            expected_worker=told.expected_worker,
        )

    def told(self, event: AnyEvent) -> None:
        """Readers of the event's task learn of it."""
        task_id = getattr(event, "task", None)
        channel = self._channels.get(task_id) if task_id is not None else None
        if task_id is None or channel is None:
            return
        task = self._desk.state.task(task_id)
        if task is not None and task.terminal is None:
            self._channels.moved(self.status(task))
        elif task is not None and event is task.terminal and channel.had_reader:
            self._ended(task, task.terminal)
        elif task is not None and event is task.terminal:
            self._channels.close(task_id)  # nobody listened: whoever comes later gets the stored answer

    def beat(self, queue: Callable[[], tuple[TaskStatus, ...]]) -> None:
        """Time passed: positions and reasons to those who wait, and away with what nobody reads any more."""
        now, tasks = self._desk.now, self._desk.state.tasks
        for task in self._channels.abandoned(now, self._grace_s):
            if task in tasks and tasks[task].submitted.urgency == "interactive":
                self._desk.live.cancels.setdefault(task, "its last reader went away")
        self._channels.forget(now, KEEP_CHANNEL_S, tasks.__contains__)
        waiting = self._channels.waiting()
        if waiting and now - self._looked_at >= PLACES_S:
            self._looked_at = now
            shown = {status.task: status for status in queue()}
            self._placed = {task: placed for task, placed in self._placed.items() if task in shown}
            for task in waiting:
                if task in shown:
                    self._place(shown[task], now)

    def _place(self, status: TaskStatus, now: float) -> None:
        """To its readers, where it says more than that time passed."""
        before = self._placed.get(status.task)
        if before is None or is_news(before[0], status, now - before[1]):
            self._placed[status.task] = status, now
            self._channels.moved(msgspec.structs.replace(status, waited_s=None))

    @asynccontextmanager
    async def follow(self, task: str) -> AsyncIterator[AsyncIterator[Update]]:
        """See ``RouterPort.follow``."""
        found = self._desk.state.task(task)
        channel, queue = self._channels.join(task)
        if found is not None and found.terminal is not None and channel.end is None:
            self._look_up(self._end(found))
        elif found is not None and channel.status is None:
            self._channels.moved(self.status(found))
        elif found is None and channel.status is None and channel.end is None:
            self._look_up(self._recall(task))
        try:
            yield self._channels.read(queue)
        finally:
            self._channels.leave(channel, queue, self._desk.now)

    def _ended(self, task: Task, terminal: Terminal) -> None:
        """Its answer is asked for once without a task of its own: nearly always that is enough."""
        asked = past.asking_answer_at(self._bus, terminal)
        if asked is None:
            self._look_up(self._end(task))
        else:
            asked.add_done_callback(partial(self._answered, task))

    def _answered(self, task: Task, asked: Reply) -> None:
        try:
            answer = past.answer_in(asked)
        except InvalidEvent:
            answer = None  # said by whoever looks again
        if answer is not None:
            self._channels.ended(self.status(task), answer, self._desk.now)
        elif not self._closed:
            self._look_up(self._end(task))

    async def _end(self, task: Task) -> None:
        ended = task.terminal
        answer = None
        if isinstance(ended, TaskCompleted):
            answer = await self._answer(task.submitted.task, past.answer_at(self._bus, ended))
        self._channels.ended(self.status(task), answer, self._desk.now)

    async def _recall(self, task: str) -> None:
        """A reader of a task that this router has forgotten: its end is all there is to tell."""
        try:
            status = await past.status(self._bus, task)
        except HeadraceError as error:
            log.warning("a former task cannot be looked up", action="recall_failed", task=task, error=str(error))
            return
        if status is not None and status.state in ENDED:
            answer = await self._answer(task, past.answer(self._bus, task))
            self._channels.ended(status, answer, self._desk.now)

    async def _answer(self, task: str, ask: Coroutine[Any, Any, Answer | None]) -> Answer | None:
        try:
            return await ask
        except HeadraceError as error:
            log.warning("no answer", action="answer_missing", task=task, error=str(error))
            return None

    def _look_up(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._lookups.add(task)
        task.add_done_callback(self._looked_up)

    def _looked_up(self, task: asyncio.Task[None]) -> None:
        self._lookups.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a reader could not be told", action="look_up_failed", error=repr(error))
