"""Tasks that nobody who is there could take: since when, whom to wake, when to give up.

Answers "is somebody's machine asleep, and is it still worth waiting?" (RELIABILITY.md R10). Only an interactive task gives up:
somebody sits before it. Batch and background wait on, and so does every task while a machine that could take it is only paused.
It wakes nobody itself: that is the shell's, asked for as a ``Wake``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from schemas.events import FailureClass, WorkerReported
from services.router.dispatch.actions import Wake
from services.router.dispatch.holds import NAMED_MAX
from services.router.dispatch.live import ALIVE_S, Live, Wait
from services.router.dispatch.state import RouterState, Task
from services.router.dispatch.turn import Turn
from services.router.fleet import ago_words, pause_words
from services.router.nearest import is_called

ABSENT = frozenset({"no_worker", "silent", "no_capability", "no_model"})
"""The planner's codes for "nobody is there": nobody holds it, nobody of them was heard lately, none can."""
WAKE_EVERY_S = 60.0
"""A machine that was told to wake needs about so long; more packets would not make it faster."""


def note(state: RouterState, live: Live, holds: Mapping[str, str], now: float) -> None:
    """Take down since when each waiting task has nobody. ``holds`` is a plan's, for every waiting task; what stands behind its
    window it calls busy without having looked who is there."""
    live.noted_at = now
    there = (r.report for w, r in state.workers.items() if _is_heard(state, live, w, now))
    heard = {name for report in there for m in report.models for name in (m.name, *m.aliases)}
    for task, wait in live.waits.items():
        if task not in holds:
            wait.absent_since = wait.woken_at = None
    for task, reason in holds.items():
        wait = live.waits.setdefault(task, Wait())
        wait.absent_code = reason.partition(":")[0]
        if wait.absent_code == "busy" and (known := state.tasks.get(task)) is not None and (models := _models(known)):
            wait.absent_code = "busy" if heard.intersection(models) else "silent"
        if wait.absent_code not in ABSENT:
            wait.absent_since = wait.woken_at = None
        elif wait.absent_since is None:
            wait.absent_since = now


def wakes(turn: Turn) -> Iterator[Wake]:
    """Once for each task and sleeping holder; not again within a minute, whoever waits."""
    live, now, wakeable = turn.live, turn.now, turn.config.absence.wakeable
    if not wakeable:
        return
    asleep = {
        worker: record.report.name
        for worker, record in turn.state.workers.items()
        if record.report.name in wakeable and not record.paused and not _heard(turn, worker)
    }
    for task_id, wait in live.waits.items() if asleep else ():
        task = turn.state.tasks.get(task_id)
        if task is None or wait.absent_since is None or wait.woken_at is not None or task.terminal is not None:
            continue
        for worker in _known_holders(turn, task, asleep):
            if _lack(turn, task, worker) is not None:
                continue
            wait.woken_at = now
            if now - live.woken.get(worker, -WAKE_EVERY_S) >= WAKE_EVERY_S:
                live.woken[worker] = now
                yield Wake(worker, asleep[worker])


def given_up(turn: Turn, task: Task) -> tuple[FailureClass, str] | None:
    """That the task fails now, and why in a sentence; None while it waits on. Where each machine that holds its model could never
    take it, its sender is told so: trying again would not help."""
    wait, absence = turn.live.waits.get(task.submitted.task), turn.config.absence
    if wait is None or wait.absent_since is None or task.submitted.urgency != "interactive":
        return None
    since, limit_s = wait.absent_since, absence.wait_s
    if wait.woken_at is not None:
        since, limit_s = wait.woken_at, absence.wake_wait_s
    if limit_s is None or turn.now - since <= limit_s:
        return None
    holders = _known_holders(turn, task)
    lacks = {worker: reason for worker in holders if (reason := _lack(turn, task, worker)) is not None}
    if any(worker not in lacks and _worth_waiting(turn, worker, wait) for worker in holders):
        return None
    if lacks and len(lacks) == len(holders):
        return "rejected", f"no machine can answer it ({_told(turn, holders, lacks)})"
    return "busy", _words(turn, task, lacks, turn.now - wait.absent_since, woken=wait.woken_at is not None)


def _lack(turn: Turn, task: Task, worker: str) -> str | None:
    outlook = turn.config.outlook
    return None if outlook is None or turn.state.workers[worker].left else outlook.lacks(turn.state, task, worker)


def _words(turn: Turn, task: Task, lacks: Mapping[str, str], waited_s: float, *, woken: bool) -> str:
    models = _models(task)
    does = "may answer with" if lacks else "holds"
    who = f"nobody who {does} {' or '.join(models[:NAMED_MAX])}" if models else "no machine that may answer it"
    holders = _known_holders(turn, task)
    why = (
        _told(turn, holders, lacks)
        or turn.live.unanswered.get(task.submitted.task)
        or "no machine that is known holds it"
    )
    sleeping = "was there or woke up" if woken else "was there"
    return f"{who} {sleeping} within {waited_s:.0f} s ({why})"


def _told(turn: Turn, holders: Sequence[str], lacks: Mapping[str, str]) -> str:
    told = [_last_seen(turn, worker, lacks.get(worker)) for worker in holders[:NAMED_MAX]]
    if len(holders) > NAMED_MAX:
        told.append(f"and {len(holders) - NAMED_MAX} more")
    return "; ".join(told)


def _last_seen(turn: Turn, worker: str, lack: str | None) -> str:
    """``laptop left 3 min ago``; what this router has not heard itself it knows from the log."""
    record = turn.state.workers[worker]
    heard = turn.live.workers.get(worker)
    logged_s = max(0.0, turn.stamp.at - record.seen_us / 1e6)
    name = record.report.name
    if record.left:
        return f"{name} left {ago_words(logged_s)}"
    if lack is not None:
        return f"{name}: {lack}"
    if record.paused:
        return f"{name} is paused {pause_words(record.paused_until_us)}"
    if heard is None:
        return f"{name} has been silent since the router's start, its last report came {ago_words(logged_s)}"
    silent_s = turn.now - heard.heard_at
    return (
        f"{name} was last heard {ago_words(silent_s)}" if silent_s > ALIVE_S else f"{name} is there but may not take it"
    )


def _models(task: Task) -> tuple[str, ...]:
    """Those it may be answered by; none where every model will do."""
    if task.submitted.wants.model is not None:
        return (task.submitted.wants.model,)
    return task.models or ((task.choice.model,) if task.choice is not None else ())


def _known_holders(turn: Turn, task: Task, among: Iterable[str] | None = None) -> list[str]:
    """Everybody (``among`` these) whose last report has one of its models, gone or not; the last seen first."""
    models, wanted, records = _models(task), task.submitted.wants.worker, turn.state.workers
    found = [
        (-records[worker].seen_us, worker)
        for worker in (records if among is None else among)
        if wanted in (None, worker) and (not models or _holds(records[worker].report, models))
    ]
    return [worker for _, worker in sorted(found)]


def _holds(report: WorkerReported, models: Sequence[str]) -> bool:
    """By any of its names: one that was canonical when the task came may be an alias now."""
    return any(is_called(info, model) for info in report.models for model in models)


def _worth_waiting(turn: Turn, worker: str, wait: Wait) -> bool:
    """It is only paused; or said something since the last look, perhaps that it is back; or has no slot to offer just now."""
    heard = turn.live.workers.get(worker)
    if heard is None or not _heard(turn, worker):
        return False
    down = heard.load is not None and heard.load.backend_up is False
    resting = wait.absent_code == "silent" and not down
    return turn.state.workers[worker].paused or heard.heard_at >= turn.live.noted_at or resting


def _heard(turn: Turn, worker: str) -> bool:
    return _is_heard(turn.state, turn.live, worker, turn.now)


def _is_heard(state: RouterState, live: Live, worker: str, now: float) -> bool:
    heard = live.workers.get(worker)
    return heard is not None and not state.workers[worker].left and now - heard.heard_at <= ALIVE_S
