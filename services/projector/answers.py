"""Answers about tasks that a router no longer remembers.

Answers ``rpc.projector.task`` (``{"task": id}``) and ``rpc.projector.status``: JSON in, JSON out. What a task's row says comes
from the projection; the events themselves are read from EVENTS by sequence, so they are given exactly as they were stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from nats.aio.msg import Msg

from schemas.codec import UnknownEvent, decode
from schemas.errors import HeadraceError, InvalidEvent
from schemas.events import Choice, TaskCompleted, TaskRouted, Times, Tokens
from services.projector.store import Store
from services.runtime.bus import Bus
from services.runtime.logs import logger

log = logger("projector")

TASK = "rpc.projector.task"
STATUS = "rpc.projector.status"
EVENTS_MAX = 200
"""A task has about five events; one that was tried and judged for ever must not make an answer of megabytes."""

OnStore = Callable[[Callable[[Store], Any]], Awaitable[Any]]


class Question(msgspec.Struct, forbid_unknown_fields=True):
    task: str


class Status(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A task as far as the log tells: the fields of the router's own status that do not need its memory."""

    task: str
    state: str
    client: str = ""
    kind: str | None = None
    domain: str | None = None
    language: str | None = None
    model: str | None = None
    worker: str | None = None
    expected_worker: str | None = None
    choice: Choice | None = None
    attempt: int = 0
    waited_s: float | None = None
    outcome: str | None = None
    finish_reason: str | None = None
    failure: str | None = None
    detail: str | None = None
    tokens: Tokens | None = None
    times: Times | None = None


class TaskAnswer(msgspec.Struct, kw_only=True):
    """``events`` are the stored events in order, ``routed`` the decision among them. ``found`` False: nothing is known."""

    task: str
    found: bool
    status: Status | None = None
    routed: msgspec.Raw | None = None
    events: list[msgspec.Raw] = []
    error: str | None = None


async def answer(bus: Bus, on_store: OnStore, message: Msg) -> None:
    """Reply to one question; a wrong one gets its error as an answer, never silence."""
    reply: Any
    try:
        if message.subject == STATUS:
            reply = await on_store(_status)
        else:
            reply = await _task(bus, on_store, msgspec.json.decode(message.data, type=Question).task)
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
    rows, seqs = await on_store(lambda store: _look_up(store, task))
    if not rows:
        return TaskAnswer(task=task, found=False)
    stored = await asyncio.gather(*(bus.stored("EVENTS", seq) for seq in seqs))
    status, routed = _status_of(rows[0]), None
    for message in stored:
        try:
            event = decode(message.data) if message is not None else None
        except InvalidEvent:
            continue
        if message is None or event is None or isinstance(event, UnknownEvent):
            continue
        if isinstance(event, TaskRouted):
            status.choice, routed = event.choice, msgspec.Raw(message.data)
        if isinstance(event, TaskCompleted) and message.seq == rows[0]["ended_seq"]:
            status.tokens, status.times = event.tokens, event.times
    events = [msgspec.Raw(message.data) for message in stored if message is not None]
    return TaskAnswer(task=task, found=True, status=status, routed=routed, events=events)


def _look_up(store: Store, task: str) -> tuple[list[dict[str, Any]], list[int]]:
    rows = store.ask("SELECT * FROM tasks WHERE task = ?", [task])
    seqs = store.ask(
        "SELECT seq FROM task_facts WHERE task = $1 UNION SELECT seq FROM samples WHERE task = $1 ORDER BY seq LIMIT $2",
        [task, EVENTS_MAX],
    )
    return rows, [row["seq"] for row in seqs]


def _status_of(row: dict[str, Any]) -> Status:
    return Status(
        task=row["task"],
        state=row["state"],
        client=row["client"] or "",
        kind=row["task_kind"],
        domain=row["domain"],
        language=row["language"],
        model=row["model"],
        worker=row["worker"],
        expected_worker=row["expected_worker"],
        attempt=row["attempt"] or 0,
        waited_s=row["waited_s"],
        outcome=row["outcome"],
        finish_reason=row["finish_reason"],
        failure=row["failure"],
        detail=row["reason"],
    )
