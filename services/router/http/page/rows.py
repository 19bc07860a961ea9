"""Which rows does the page show, and has one changed enough to be sent again?

Pure: the router's values at ``now`` (Unix time) to rows. What a row is ``known_by`` changes seldom and is sent at once; what it
``tells`` besides (seconds, shares) changes with every look, and is sent now and then. Instants are told instead of ages, so that
a browser counts the seconds itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from services.router.domains import UNKNOWN
from services.router.fleet import Fleet, WorkerView
from services.router.http.fleet_rows import WorkerRow, worker_row
from services.router.port import Rise, TaskStatus

TAKE_WORK = ("ready", "stale")
SILENT = "silent"
MODELS_MOST = 12
"""Of one machine; a hub with hundreds of models says how many more."""
_TO_BASE_32 = str.maketrans("jkmnpqrstvwxyz", "ijklmnopqrstuv")
_NUMBERS = re.compile(r"(\d+)", re.ASCII)
_ID_CHARS, _TIME_CHARS = 26, 10


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """``view`` is what its template is given as ``row``."""

    id: str
    known_by: tuple[Any, ...]
    tells: tuple[Any, ...] = ()
    view: Any


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """``loaded`` None: the backend does not say."""

    name: str
    loaded: bool | None


class MachineView(msgspec.Struct, frozen=True, kw_only=True):
    """``trouble`` is what its model server's silence is put down to; ``resumes`` when a pause ends, None where it has no end.
    Without ``takes_work`` nothing begins there, however many slots are free."""

    worker: WorkerRow
    trouble: str
    resumes: float | None
    takes_work: bool
    models: tuple[Held, ...]
    more: int


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """Instants are Unix time; ``due`` is when what is late should have ended. ``on`` is the machine's name, ``reason`` a hold's
    code and words or the choice's words, ``first`` whom these are about where it is somebody else now, ``trouble`` why it ended
    badly. ``domain`` None: unknown."""

    task: str
    state: str
    client: str
    kind: str
    domain: str | None
    model: str | None
    on: str | None
    reason: str
    first: str = ""
    trouble: str = ""
    rises: tuple[Rise, ...] = ()
    since: float | None = None
    until: float | None = None
    due: float | None = None
    at: float | None = None


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """All lists of the page at one moment."""

    fleet: tuple[Row, ...]
    waiting: tuple[Row, ...]
    running: tuple[Row, ...]
    decisions: tuple[Row, ...]


def seen(fleet: Fleet, queue: Iterable[TaskStatus], recent: Iterable[TaskStatus], now: float) -> Seen:
    names, tasks = fleet.names(), list(queue)
    machines = sorted(fleet.workers.values(), key=lambda w: (_in_order(w.name), w.id))
    return Seen(
        fleet=tuple(machine_row(machine) for machine in machines),
        waiting=tuple(waiting_row(task, names, now) for task in tasks if task.state == "waiting"),
        running=tuple(running_row(task, names, now) for task in tasks if task.state != "waiting"),
        decisions=tuple(decision_row(task, names) for task in recent),
    )


def machine_row(worker: WorkerView) -> Row:
    told = worker_row(worker if worker.alive else _unheard(worker))
    resident = told.resident
    held = sorted(
        (Held(name=name, loaded=None if resident is None else name in resident) for name in told.models),
        key=lambda each: (not each.loaded, each.name),
    )
    view = MachineView(
        worker=told,
        trouble=worker.backend_reason or "",
        resumes=None if worker.paused_until_us is None else worker.paused_until_us / 1e6,
        takes_work=told.state in TAKE_WORK,
        models=tuple(held[:MODELS_MOST]),
        more=max(0, len(held) - MODELS_MOST),
    )
    known_by = (told.name, told.state, told.paused, told.slots, told.free, told.models, told.resident, told.backend)
    tells = (_twentieths(told.others_use), _rounded(told.wait_s), tuple(sorted(told.unknown.items())))
    return Row(id=told.id, known_by=known_by, tells=tells, view=view)


def _unheard(worker: WorkerView) -> WorkerView:
    """What it said last is no news of what it is doing."""
    return msgspec.structs.replace(
        worker, free=None, running=None, wait_s=None, resident=None, others_use=None, others_reason=SILENT
    )


def waiting_row(task: TaskStatus, names: Mapping[str, str], now: float) -> Row:
    reason = task.reason or "routing"
    until = None if task.eta_s is None else now + task.eta_s
    view = _view(task, names, reason, since=now - (task.waited_s or 0.0), until=until)
    rises = tuple((rise.of, rise.code) for rise in task.rises)
    known_by = (task.model, view.on, reason.partition(":")[0], rises, until is None)
    return Row(id=task.task, known_by=known_by, tells=(reason, _rounded(until)), view=view)


def running_row(task: TaskStatus, names: Mapping[str, str], now: float) -> Row:
    since = None if task.ran_s is None else now - task.ran_s
    due = None if task.late_s is None else now - task.late_s
    until = None if task.ends_s is None or due is not None else now + task.ends_s
    view = _view(task, names, "", since=since, until=until, due=due)
    known_by = (task.state, task.model, view.on, task.attempt, until is None, due is None)
    return Row(id=task.task, known_by=known_by, tells=(_rounded(until),), view=view)


def decision_row(task: TaskStatus, names: Mapping[str, str]) -> Row:
    choice = task.choice
    view = _view(task, names, choice.reason if choice is not None else "")
    if choice is not None:
        on = view.on if choice.worker is None else names.get(choice.worker, choice.worker)
        if (choice.model, on) != (view.model, view.on):
            first = choice.model if choice.worker is None else f"{choice.model} @ {on}"
            view = msgspec.structs.replace(view, first=first)
    return Row(id=task.task, known_by=(view.state, view.model, view.on, view.reason), view=view)


def made_at(task: str) -> float | None:
    """When an id was made (Unix time, by its own first 48 bits); None where it is none of ours."""
    try:
        return int(task[:_TIME_CHARS].translate(_TO_BASE_32), 32) / 1000 if len(task) == _ID_CHARS else None
    except ValueError:
        return None


def _view(
    task: TaskStatus,
    names: Mapping[str, str],
    reason: str,
    *,
    since: float | None = None,
    until: float | None = None,
    due: float | None = None,
) -> TaskView:
    worker = task.worker or task.expected_worker
    return TaskView(
        task=task.task,
        state=task.state,
        client=task.client,
        kind=task.kind,
        domain=None if task.domain == UNKNOWN.label else task.domain,
        model=task.model,
        on=names.get(worker, worker) if worker is not None else None,
        reason=reason,
        trouble=_trouble(task),
        rises=task.rises,
        since=since,
        until=until,
        due=due,
        at=made_at(task.task),
    )


def _in_order(name: str) -> list[tuple[int, str]]:
    """``w2`` before ``w10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part.casefold()) for part in _NUMBERS.split(name)]


def _trouble(task: TaskStatus) -> str:
    if task.state not in ("failed", "dead", "cancelled"):
        return ""
    return ": ".join(told for told in (task.failure, task.detail) if told)


def _rounded(value: float | None) -> int | None:
    return None if value is None else round(value)


def _twentieths(share: float | None) -> int | None:
    """A share trembles; a change of 5 % is one."""
    return None if share is None else round(share * 20)
