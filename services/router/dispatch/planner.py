"""Which waiting tasks to release now, and to whom: ``plan(state, live, now) -> Plan``.

Answers "what leaves the queue?". This is the simplest correct planner: the queue in order, at most the free credits, each task
to the free holder whose standing pull has the best priority, or to its lane. Everything else stays in the router's queue with
a reason that people can read. It takes permits all or nothing; a skipped task keeps its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from schemas.events import Choice, WorkerReported
from schemas.subjects import ANY_LANE, group_durable, lane_durable
from services.router.dispatch.live import ALIVE_S, GONE_S, Live
from services.router.dispatch.permits import Counts, Limits
from services.router.dispatch.state import RouterState, Task, served

CLASS_OFFSET_S = {"interactive": 0.0, "batch": 120.0, "background": 600.0}
"""ROUTING.md B3.5: bounded offsets, because strict classes let background tasks wait for ever."""


@dataclass(frozen=True)
class Release:
    """One task that may go now. ``lane`` is ``any`` or a worker's id; ``holders`` are all who may serve it."""

    task: str
    attempt: int
    model: str
    reason: str | None
    capability: str
    lane: str
    expected: str
    holders: tuple[str, ...]
    permits: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """``holds``: task -> why it waits, a code and words, for every waiting task that is not released; ``bypasses``: how many
    of these releases go before it although it is older."""

    releases: tuple[Release, ...]
    holds: dict[str, str]
    bypasses: dict[str, int]


Holders = Callable[[RouterState, str, Task], tuple[str, ...]]
"""Who may serve a task with a model, heard lately or not, sorted; ``reported_holders`` where no policy says more."""


@dataclass
class _Desk:
    """What one planning pass works with."""

    state: RouterState
    live: Live
    now: float
    counts: Counts
    free: dict[str, int]
    holders: Holders


def queue(state: RouterState, live: Live) -> list[Task]:
    """The waiting tasks in the order they may leave: time of arrival plus the class's offset."""
    waiting = [task for task in state.tasks.values() if task.terminal is None and task.live is None]
    return sorted(waiting, key=lambda t: (t.at_us / 1e6 + CLASS_OFFSET_S[t.submitted.urgency], t.seq))


def available(state: RouterState, live: Live, now: float) -> dict[str, int]:
    """Free credits by worker: its own word, less the live attempts meant for it or running on it that the word omits.

    Credits overtake the facts now and then (135 of 4,000), hence the subtraction."""
    result: dict[str, int] = {}
    attempts = [(task_id, a) for task_id, task in state.tasks.items() if (a := task.live) is not None]
    for worker, heard in live.workers.items():
        credit = heard.credit
        if credit is None or credit.draining or heard.suspect or now - heard.heard_at > ALIVE_S:
            continue
        listed = {(r.task, r.attempt) for r in credit.running}
        unlisted = sum(1 for t, a in attempts if (a.worker or a.expected) == worker and (t, a.n) not in listed)
        result[worker] = max(0, credit.free - unlisted)
    return result


def plan(
    state: RouterState,
    live: Live,
    now: float,
    limits: Limits,
    skip: frozenset[str] = frozenset(),
    *,
    holders: Holders | None = None,
    explain: bool = True,
) -> Plan:
    """Releases in order. ``skip`` are tasks with a decision on its way; they are neither released nor given a reason.

    Without ``explain`` the walk ends with the last free credit, and later tasks get no reason."""
    counts, free = Counts(limits, state.held), available(state, live, now)
    desk = _Desk(state, live, now, counts, free, holders or reported_holders)
    releases: list[Release] = []
    holds: dict[str, str] = {}
    before: dict[str, int] = {}
    for task in queue(state, live):
        task_id = task.submitted.task
        if not explain and not any(desk.free.values()):
            break
        if task_id in skip:
            continue
        result = _place(task, desk)
        if isinstance(result, Release):
            desk.free[result.expected] -= 1
            desk.counts.take(result.permits)
            releases.append(result)
        else:
            holds[task_id], before[task_id] = result, len(releases)
    return Plan(tuple(releases), holds, {t: len(releases) - n for t, n in before.items() if n < len(releases)})


def _place(task: Task, desk: _Desk) -> Release | str:
    submitted = task.submitted
    if _choice(task, desk) is None:
        why = desk.live.unanswered.get(submitted.task)
        return f"no_model: {why}" if why is not None else "routing: the model is being chosen"
    retry_at = desk.live.retry_at.get((submitted.task, task.next_attempt))
    if retry_at is not None and retry_at > desk.now:
        return f"backoff: tries again in {retry_at - desk.now:.0f} s"
    model, reason, holders = _model(task, desk)
    if not holders:
        return f"no_worker: nobody who holds {model} is there"
    ready = [
        w for w in holders if _heard(desk, w) and desk.free.get(w, 0) > 0 and _priority(desk, w, model) is not None
    ]
    if not ready and all(desk.now - _heard_at(desk, w) > ALIVE_S for w in holders):
        return f"silent: nothing was heard lately of the {len(holders)} machines with {model}"
    if not ready:
        return f"busy: all {len(holders)} machines with {model} are busy"
    ready.sort(key=lambda w: (_priority(desk, w, model), -desk.free[w], w))
    results = [_release(task, desk, model, reason, holders, ready[0])]
    for expected in ready[1:]:
        if isinstance(results[-1], Release):
            break
        results.append(_release(task, desk, model, reason, holders, expected))
    return results[-1] if isinstance(results[-1], Release) else results[0]


def _release(
    task: Task, desk: _Desk, model: str, reason: str | None, holders: tuple[str, ...], expected: str
) -> Release | str:
    submitted = task.submitted
    capability = _capability(_report(desk, expected), model)
    alike = tuple(w for w in holders if _capability(_report(desk, w), model) == capability)
    everyone = _all_holders(desk, model, capability)
    durable = group_durable(capability, model)
    shared = _permits(desk, model, submitted.client, alike)
    to_group = (
        submitted.wants.worker is None
        and not _was_refused(task)
        and set(everyone) <= set(alike)
        and all(_heard(desk, w) for w in everyone)
        and durable in _armed(desk, expected)
        and desk.counts.lacking(shared) is None
    )
    if to_group:
        lane, permits = ANY_LANE, shared
    else:
        if lane_durable(expected) not in _armed(desk, expected):
            return f"busy: the lane of {expected} is not armed"
        lane, alike, permits = expected, (expected,), _permits(desk, model, submitted.client, (expected,))
        lacking = desk.counts.lacking(permits)
        if lacking is not None:
            kind, name = lacking.split(":", 1)
            return f"{kind}_full: {name} has {desk.counts.held.get(lacking, 0)} running, which is its limit"
    return Release(submitted.task, task.next_attempt, model, reason, capability, lane, expected, alike, permits)


def _was_refused(task: Task) -> bool:
    """Somebody pulls from the group who must not have it (his report is late or lost): a lane reaches who may."""
    return bool(task.attempts) and task.attempts[max(task.attempts)].failure == "refused"


def _permits(desk: _Desk, model: str, client: str, holders: tuple[str, ...]) -> tuple[str, ...]:
    """Of the model, the client and each holder's backend. A backend that somebody else limits takes no shared permit."""
    own = [w for w in holders if _report(desk, w).local]
    names = [f"model:{model}"] if own else []
    return tuple(dict.fromkeys((*names, f"client:{client}", *(desk.state.backend_permit(w) for w in own))))


def _model(task: Task, desk: _Desk) -> tuple[str, str | None, tuple[str, ...]]:
    """(model, why it is another one, who may serve it). Where everybody who holds the chosen one left or is long silent and the
    client left it open: the next candidate that somebody holds, else any model that may serve."""
    choice = _choice(task, desk)
    assert choice is not None
    chosen = choice.model
    holders = desk.holders(desk.state, chosen, task)
    if task.submitted.wants.model is not None or any(_there(desk, worker) for worker in holders):
        return chosen, None, holders
    draft = desk.live.drafts.get(task.submitted.task)
    candidates = task.models or (tuple(c.model for c in draft.candidates) if draft is not None else ())
    held = sorted({m.name for r in desk.state.workers.values() if not r.left for m in r.report.models})
    for model in dict.fromkeys((*candidates, *held)):
        others = desk.holders(desk.state, model, task)
        if any(_there(desk, worker) for worker in others):
            lost = "was heard lately" if holders else "is there any more"
            return model, f"nobody who holds {chosen} {lost}", others
    return chosen, None, holders


def _choice(task: Task, desk: _Desk) -> Choice | None:
    """The decision in the log, else the one on its way there."""
    draft = desk.live.drafts.get(task.submitted.task)
    return task.choice if task.routed_seq is not None or draft is None else draft.choice


def reported_holders(state: RouterState, model: str, task: Task) -> tuple[str, ...]:
    """By the reports alone: who holds the model, supports what it needs, has the context, and is the worker asked for."""
    wants = task.submitted.wants
    result = []
    for worker in sorted(state.workers):
        record = state.workers[worker]
        info = next((m for m in served(record.report) if m.name == model), None)
        if record.left or info is None or (wants.worker is not None and wants.worker != worker):
            continue
        if wants.context is not None and info.context is not None and info.context < wants.context:
            continue
        result.append(worker)
    return tuple(result)


def _all_holders(desk: _Desk, model: str, capability: str) -> tuple[str, ...]:
    """Everybody whose pull may stand in the group: heard within its expiry, or not yet, so soon after our start."""
    return tuple(
        worker
        for worker, record in sorted(desk.state.workers.items())
        if not record.left
        and any(m.name == model and m.capability == capability for m in served(record.report))
        and desk.now - _heard_at(desk, worker) <= ALIVE_S
    )


def _heard_at(desk: _Desk, worker: str) -> float:
    """Heard time starts at 0 with the router, and so does everybody's silence."""
    heard = desk.live.workers.get(worker)
    return heard.heard_at if heard is not None else 0.0


def _there(desk: _Desk, worker: str) -> bool:
    """Worth waiting for: it may only be busy, or asleep for a moment."""
    return desk.now - _heard_at(desk, worker) <= GONE_S


def _heard(desk: _Desk, worker: str) -> bool:
    heard = desk.live.workers.get(worker)
    return heard is not None and not heard.suspect and desk.now - heard.heard_at <= ALIVE_S


def _armed(desk: _Desk, worker: str) -> dict[str, int]:
    heard = desk.live.workers.get(worker)
    return heard.credit.armed if heard is not None and heard.credit is not None else {}


def _priority(desk: _Desk, worker: str, model: str) -> int | None:
    """The standing pull's priority for the model's group, else its lane's; None when neither stands."""
    armed = _armed(desk, worker)
    group = group_durable(_capability(_report(desk, worker), model), model)
    return armed.get(group, armed.get(lane_durable(worker)))


def _report(desk: _Desk, worker: str) -> WorkerReported:
    return desk.state.workers[worker].report


def _capability(report: WorkerReported, model: str) -> str:
    return next((m.capability for m in report.models if m.name == model), "cpu_inference")
