"""What the router no longer remembers: asked of the projector, read again from the log by sequence.

Answers "what became of an old task?". A router on another host has no DuckDB file; it asks by request and reply.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from schemas.codec import UnknownEvent, decode
from schemas.errors import BusError, HeadraceError
from schemas.events import AnyEvent, TaskCompleted, TaskRouted, TaskSubmitted, Terminal
from schemas.subjects import PROJECTOR_TASK
from schemas.work import Answer, decode_wire
from services.router.dispatch.state import RouterState
from services.router.port import TaskStatus
from services.router.view import status_of
from services.runtime.answers import Answer as Reply
from services.runtime.bus import Bus

ANSWER_S = 5.0
"""A projector that folds a backlog answers between two batches."""


class _Found(msgspec.Struct):
    """What the router reads of the projector's answer."""

    events: list[msgspec.Raw] = []
    tasks: list[str] = []
    error: str | None = None


async def events_of(bus: Bus, task: str) -> tuple[AnyEvent, ...]:
    """All facts that name the task, in order; empty where the projector knows none. Raises HeadraceError where it cannot be
    asked: "unknown" would be a lie about a task that was accepted."""
    found = await _asked(bus, f"task {task[:64]!r}", task=task)
    events = (decode(bytes(raw)) for raw in found.events)
    return tuple(event for event in events if not isinstance(event, UnknownEvent))


async def task_named(bus: Bus, message: str) -> str | None:
    """The newest task that was submitted under this name of the client's; None where there is none. Raises as ``events_of``."""
    found = await _asked(bus, f"task of message {message[:64]!r}", message=message)
    return found.tasks[-1] if found.tasks else None


async def tasks_under(bus: Bus, parent: str) -> tuple[str, ...]:
    """The tasks that were submitted as parts of ``parent``, in order. Raises as ``events_of``."""
    return tuple((await _asked(bus, f"tasks of {parent[:64]!r}", parent=parent)).tasks)


async def _asked(bus: Bus, about: str, **question: str) -> _Found:
    try:
        answer = await bus.request(PROJECTOR_TASK, msgspec.json.encode(question), timeout_s=ANSWER_S)
        found = msgspec.json.decode(answer, type=_Found)
    except (BusError, msgspec.DecodeError) as error:
        raise _silent(about, error) from error
    if found.error is not None:
        raise _silent(about, found.error)
    return found


def _silent(about: str, why: object) -> HeadraceError:
    return HeadraceError(
        f"the projector does not answer about the former {about} ({why}); "
        "try again soon, and see with `headrace doctor` whether a projector runs"
    )


async def events_at(bus: Bus, seqs: Iterable[int]) -> tuple[AnyEvent, ...]:
    """The facts stored at these sequences, those that can still be read."""
    events: list[AnyEvent] = []
    for seq in seqs:
        found = await bus.stored("EVENTS", seq)
        event = decode(found.data) if found is not None else None
        if event is not None and not isinstance(event, UnknownEvent):
            events.append(event)
    return tuple(events)


async def explain(bus: Bus, task: str) -> tuple[TaskStatus, TaskRouted | None, tuple[Any, ...]] | None:
    """Status, decision and facts of an old task: the same fold over the same facts as when it was young."""
    events = await events_of(bus, task)
    if not any(isinstance(event, TaskSubmitted) for event in events):
        return None
    state = RouterState()
    for n, event in enumerate(events, 1):
        state.apply(event, n, int(event.at * 1e6))
    found = state.task(task)
    if found is None:
        return None
    routed = next((event for event in events if isinstance(event, TaskRouted)), None)
    return status_of(found, now_us=int(events[-1].at * 1e6)), routed, events


async def status(bus: Bus, task: str) -> TaskStatus | None:
    found = await explain(bus, task)
    return found[0] if found is not None else None


async def answer(bus: Bus, task: str) -> Answer | None:
    """The stored answer of an old task; None when there is none or it has expired."""
    for event in await events_of(bus, task):
        if isinstance(event, TaskCompleted):
            return await answer_at(bus, event)
    return None


def asking_answer_at(bus: Bus, completed: Terminal) -> Reply | None:
    """The question of ``answer_at`` leaves now, and ``answer_in`` reads what comes; None where it cannot, or there is none."""
    if not isinstance(completed, TaskCompleted) or completed.answer is None:
        return None
    return bus.asking_last_for("TASKS", completed.answer.subject)


def answer_in(reply: Reply) -> Answer | None:
    """None: no answer came to this one try, or not a message. ``answer_at`` tries on, and says what is wrong."""
    message = None if reply.cancelled() else reply.result()
    headers = message.headers if message is not None else None
    if message is None or headers is None or headers.status is not None:
        return None
    return decode_wire(message.data, Answer)


async def answer_at(bus: Bus, completed: Terminal) -> Answer | None:
    """The answer that a completion refers to."""
    if not isinstance(completed, TaskCompleted) or completed.answer is None:
        return None
    found = await bus.last_for("TASKS", completed.answer.subject)
    return decode_wire(found.data, Answer) if found is not None else None
