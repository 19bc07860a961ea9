"""Bench work as an ordinary task: submitted over NATS, followed to its end, its answer read back.

Answers "what did this model on this machine say, and how long did it take?". Whoever decides in the fleet decides about these
tasks too; this only submits, listens and cancels. It never touches a backend, and its tasks are never in anybody's way: they
wait in the background class unless the work says otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, Self

import msgspec

from schemas.codec import decode
from schemas.errors import BusError, InvalidEvent
from schemas.events import (
    Bench,
    Domain,
    Options,
    PayloadRef,
    Purpose,
    TaskCancelled,
    TaskCompleted,
    TaskDead,
    TaskFailed,
    TaskSubmitted,
    Terminal,
    Urgency,
    Wants,
)
from schemas.language import language_of
from schemas.sizes import sizes_of, text_of
from schemas.subjects import ROUTER_CANCEL, body_subject, submit_id
from schemas.work import Answer, Body, CancelTask, decode_wire, encode_wire
from services.runtime.bus import Bus
from services.runtime.clock import Clock, SystemClock
from services.runtime.feed import Feed
from services.runtime.ids import new_id
from services.runtime.logs import logger
from services.runtime.stored import StoredMessage

log = logger("benchmarker")

CLIENT = "benchmarker"
METHOD = "bench"
"""How the domain of such a task came to be known: it was said, not classified."""
ENDS = ("ev.task.completed.*", "ev.task.failed.*", "ev.task.cancelled.*", "ev.task.dead.*")
WAIT_S = 5.0
"""For the start of unasked work, two attempts at handing it over. An idle machine starts at once; one that does not is not idle
after all or has fallen asleep, and the other workers of its host need not wait for it."""
CANCEL_AGAIN_S = 0.5
"""A cancel is a core message and may get lost, or come before its task's fact: it is repeated until the end is in the log."""
CANCEL_TRIES = 60


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to ask one model on one machine, by their canonical name and id. ``of`` are the tasks that it judges;
    ``deadline_s`` is how long it may wait for its start."""

    purpose: Purpose
    model: str
    worker: str
    domain: str
    body: Body
    options: Options = Options()
    suite: str | None = None
    prompt: str | None = None
    reason: str = ""
    of: tuple[str, ...] = ()
    urgency: Urgency = "background"
    deadline_s: float | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """How it ended: with ``completed`` (and the stored answer, unless it has none or it has expired), or with the ``failure``
    in words."""

    task: str
    completed: TaskCompleted | None = None
    answer: Answer | None = None
    failure: str | None = None


class Asks(Protocol):
    """What a payer of debts needs of ``Asking``; the service hands one that also knows which machines it uses."""

    async def run(self, work: Work) -> Result: ...


class Asking:
    """``async with Asking(bus) as asking: result = await asking.run(work)``; any number at once. Leaving it cancels the rest."""

    def __init__(
        self, bus: Bus, *, by: str = CLIENT, clock: Clock | None = None, new_id: Callable[[], str] = new_id
    ) -> None:
        self._bus, self._by, self._clock, self._new_id = bus, by, clock or SystemClock(), new_id
        self._waiting: dict[str, asyncio.Future[Terminal]] = {}
        self._cancelling: set[asyncio.Task[None]] = set()
        self._feed: Feed | None = None

    async def __aenter__(self) -> Self:
        start_seq = await self._bus.last_seq("EVENTS") + 1
        self._feed = await Feed(self._bus, "EVENTS", self._heard, start_seq=start_seq, filters=ENDS).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in list(self._waiting):
            await self._bus.send(ROUTER_CANCEL, encode_wire(CancelTask(task=task, reason="the benchmarker stops")))
        for cancelling in self._cancelling:
            cancelling.cancel()
        if self._feed is not None:
            await self._feed.stop()

    async def run(self, work: Work) -> Result:
        """To its end, whichever that is. When this is cancelled, so is the task, for the reason given to ``cancel``. BusError
        where it could not be stored."""
        task, body = self._new_id(), encode_wire(work.body)
        payload = PayloadRef(subject=body_subject(CLIENT, task), bytes=len(body))
        # The text goes first: who decides cannot know that it is on its way (PROTOCOL.md).
        await self._bus.publish_stored(payload.subject, body, f"{task}.in")
        end = self._waiting[task] = asyncio.get_running_loop().create_future()
        try:
            await self._bus.publish_event(self._submitted(task, work, payload), submit_id(task))
            terminal = await end
        except (asyncio.CancelledError, BusError) as error:
            if not end.done() or end.cancelled():
                self.cancel(task, str(error) or "the benchmarker gave it up")
            raise
        finally:
            if self._waiting.get(task) is end:
                del self._waiting[task]
        return await self._result(task, terminal)

    def cancel(self, task: str, reason: str) -> None:
        """Ask for a task's end until it is in the log; returns at once. Also for tasks that a former benchmarker left."""
        cancelling = asyncio.create_task(self._cancel(task, reason), name=f"cancel {task}")
        self._cancelling.add(cancelling)
        cancelling.add_done_callback(self._cancelling.discard)

    def _submitted(self, task: str, work: Work, payload: PayloadRef) -> TaskSubmitted:
        return TaskSubmitted(
            id=self._new_id(),
            at=self._clock.unix(),
            by=self._by,
            task=task,
            client=CLIENT,
            kind="bench",
            urgency=work.urgency,
            domain=Domain(label=work.domain, method=METHOD),
            language=language_of(text_of(work.body)),
            sizes=sizes_of(work.body, payload.bytes),
            wants=Wants(model=work.model, worker=work.worker),
            options=work.options,
            deadline_s=work.deadline_s,
            payload=payload,
            bench=Bench(purpose=work.purpose, suite=work.suite, prompt=work.prompt, reason=work.reason, of=work.of),
        )

    async def _cancel(self, task: str, reason: str) -> None:
        end = self._waiting[task] = asyncio.get_running_loop().create_future()
        try:
            for _ in range(CANCEL_TRIES):
                await self._bus.send(ROUTER_CANCEL, encode_wire(CancelTask(task=task, reason=reason)))
                if (await asyncio.wait([end], timeout=CANCEL_AGAIN_S))[0]:
                    return
            log.warning("a task outlives its cancellation", action="bench_cancel_unheard", task=task)
        finally:
            self._waiting.pop(task, None)

    async def _heard(self, message: StoredMessage) -> None:
        try:
            event = decode(message.data)
        except InvalidEvent:
            return  # the router and the projector say so
        if isinstance(event, TaskCompleted | TaskFailed | TaskCancelled | TaskDead):
            end = self._waiting.get(event.task)
            if end is not None and not end.done():
                end.set_result(event)

    async def _result(self, task: str, terminal: Terminal) -> Result:
        if not isinstance(terminal, TaskCompleted):
            return Result(task=task, failure=_why(terminal))
        found = await self._bus.last_for("TASKS", terminal.answer.subject) if terminal.answer is not None else None
        answer = decode_wire(found.data, Answer) if found is not None else None
        return Result(task=task, completed=terminal, answer=answer)


def _why(terminal: Terminal) -> str:
    match terminal:
        case TaskFailed():
            return f"{terminal.failure}: {terminal.detail}" if terminal.detail else terminal.failure
        case TaskCancelled():
            return f"cancelled: {terminal.reason}"
        case TaskDead():
            return f"given up after {terminal.attempts} attempts: {terminal.detail}"
        case _:
            return ""
