"""Answers about tasks that a router no longer remembers, and about how things stood.

Answers ``rpc.projector.task`` (``{"task": id}`` with its events; ``{"message": …}`` or ``{"parent": …}`` with the tasks' ids),
``rpc.projector.as_of`` (``as_of``) and ``rpc.projector.status``: JSON in, JSON out. The projection knows which events name a
task; they are read from EVENTS by sequence, so they are given exactly as they were stored. What they mean is the fold's
business, not this file's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from nats.aio.msg import Msg

from schemas.errors import HeadraceError
from schemas.subjects import PROJECTOR_AS_OF, PROJECTOR_JUDGES, PROJECTOR_STATUS
from services.projector.as_of import AsOf, as_of
from services.projector.judges import judges
from services.projector.store import Store
from services.runtime.bus import Bus
from services.runtime.logs import logger

log = logger("projector")

EVENTS_MAX = 200
"""A task has about five events; one that was tried and judged for ever must not make an answer of megabytes."""

WORDS_MAX = 4
"""Of one person beside one model: in a comparison, the model may have answered on several machines."""

OnStore = Callable[[Callable[[Store], Any]], Awaitable[Any]]


class Question(msgspec.Struct, forbid_unknown_fields=True):
    """One of the three: a task, the client's name for its answer, or what it is a part of."""

    task: str = ""
    message: str | None = None
    parent: str | None = None


class TaskAnswer(msgspec.Struct, kw_only=True):
    """``events`` are the stored events in order, ``tasks`` the ids of those asked for by message or parent. ``found`` False:
    nothing is known."""

    task: str
    found: bool
    events: list[msgspec.Raw] = []
    tasks: list[str] = []
    error: str | None = None


async def answer(bus: Bus, on_store: OnStore, message: Msg) -> None:
    """Reply to one question; a wrong one gets its error as an answer, never silence."""
    reply: Any
    try:
        if message.subject == PROJECTOR_STATUS:
            reply = await on_store(_status)
        elif message.subject == PROJECTOR_JUDGES:
            reply = await on_store(judges)
        elif message.subject == PROJECTOR_AS_OF:
            asked = msgspec.json.decode(message.data, type=AsOf)
            reply = await on_store(lambda store: as_of(store, asked))
        else:
            question = msgspec.json.decode(message.data, type=Question)
            reply = await (_tasks(on_store, question) if not question.task else _task(bus, on_store, question.task))
    except (msgspec.DecodeError, HeadraceError) as error:
        log.warning("question not answered", action="rpc_failed", subject=message.subject, error=str(error))
        reply = TaskAnswer(task="", found=False, error=str(error))
    if message.reply:
        await bus.send(message.reply, msgspec.json.encode(reply))


def _status(store: Store) -> dict[str, Any]:
    counts = store.ask(
        "SELECT (SELECT count(*) FROM samples) AS samples, (SELECT count(*) FROM cells) AS cells, "
        "(SELECT count(*) FROM dead) AS dead"
    )[0]
    return {"position": store.position, "heartbeats": store.heartbeats, "snapshot": str(store.files.snapshot), **counts}


async def _task(bus: Bus, on_store: OnStore, task: str) -> TaskAnswer:
    found, seqs = await on_store(lambda store: _look_up(store, task))
    stored = await asyncio.gather(*(bus.stored("EVENTS", seq) for seq in seqs))
    return TaskAnswer(task=task, found=found, events=[msgspec.Raw(event.data) for event in stored if event is not None])


async def _tasks(on_store: OnStore, question: Question) -> TaskAnswer:
    column, value = ("message", question.message) if question.message is not None else ("parent", question.parent)
    sql = (
        f"SELECT task FROM (SELECT task, seq FROM task_facts WHERE type = 'task.submitted' AND {column} = $1 "
        "ORDER BY seq DESC LIMIT $2) ORDER BY seq"
    )
    rows = await on_store(lambda store: store.ask(sql, [value, EVENTS_MAX]))
    tasks = [row["task"] for row in rows]
    return TaskAnswer(task="", found=bool(tasks), tasks=tasks)


def _look_up(store: Store, task: str) -> tuple[bool, list[int]]:
    """Whether the task is known, and where its events lie. Of what each said of it, the latest: whoever changes his mind for
    ever must still find his last word."""
    seqs = store.ask(
        "SELECT seq FROM (SELECT seq FROM task_facts WHERE task = $1 UNION SELECT seq FROM samples WHERE task = $1 "
        "AND kind <> 'quality' ORDER BY seq LIMIT $2) UNION (SELECT seq FROM samples WHERE task = $1 AND kind = 'quality' "
        "QUALIFY row_number() OVER (PARTITION BY source, judge, peer ORDER BY seq DESC) <= $3 ORDER BY seq DESC LIMIT $2) "
        "ORDER BY seq",
        [task, EVENTS_MAX, WORDS_MAX],
    )
    known = store.ask("SELECT 1 FROM tasks WHERE task = ?", [task])
    return bool(known), [row["seq"] for row in seqs] if known else []
