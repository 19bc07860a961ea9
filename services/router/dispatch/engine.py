"""The router's half of the attempt protocol: ``decide(state, live, now, ...) -> actions``, pure.

Answers "what must the dispatcher do now?", after any event, credit, answer or pulse. It can be called as often as one likes:
what is on its way (``live.pending``) is not asked for again, what was lost is asked for again under the same message id, and
which of two racing facts counts is decided by the log alone (``state``). It is deterministic; the only thing it changes is
``live``, where it notes whom it has told and whom it suspects. See PROTOCOL.md, "Only the router retries".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from schemas.events import (
    AttemptFailed,
    FailureClass,
    TaskCancelled,
    TaskDead,
    TaskFailed,
    TaskReleased,
    TaskRouted,
)
from schemas.streams import group_consumer, lane_consumer
from schemas.subjects import (
    end_id,
    fail_id,
    group_durable,
    item_id,
    item_subject,
    lane_durable,
    release_id,
    routed_id,
    start_id,
)
from schemas.work import Control, WorkItem
from services.router.dispatch.actions import Action, DeleteItem, DropConsumer, EnsureConsumer, Publish, PutItem, Tell
from services.router.dispatch.live import FRESH_S, LEASE_S, Live, Wait
from services.router.dispatch.permits import UNLIMITED, Limits
from services.router.dispatch.planner import Holders, Release, available, plan, queue
from services.router.dispatch.state import Attempt, Key, RouterState, Task, WorkerRecord, served

BACKOFF_S = (1.0, 5.0, 30.0)
"""Waits after a backend's failures; a lost or unstarted attempt is no backend's failure and waits for nothing."""
MAX_STARTED = 3
REPEAT_S = 1.0
"""How often a cancel or hello is repeated while a credit shows that it is needed."""
HELLOS_BEFORE_DOUBT = 5
"""A worker that does not arm after so many hellos may be pulling from a consumer that somebody deleted: make it again."""
UNHELD_S = 3_600.0
"""A consumer goes after an hour without holders; ``inactive_threshold`` would delete it with messages pending."""
FINAL: frozenset[FailureClass] = frozenset({"rejected"})

Decorate = Callable[[TaskReleased, Task], TaskReleased]
Route = Callable[[Task], TaskRouted | None]


@dataclass(frozen=True)
class Stamp:
    """Who says it, when (for display) and with which ids: everything that a pure core must be given."""

    by: str
    at: float
    new_id: Callable[[], str]


@dataclass(frozen=True)
class Config:
    """``route`` makes a task's decision, None while it cannot; ``decorate`` adds predictions to a release."""

    route: Route
    decorate: Decorate = lambda release, task: release
    limits: Limits = UNLIMITED
    holders: Holders | None = None
    lease_s: float = LEASE_S
    start_deadline_s: float = 2.0


def decide(state: RouterState, live: Live, now: float, config: Config, stamp: Stamp, epoch: int) -> list[Action]:
    """The actions that are needed now and not on their way. Nothing while another epoch is in force, or before ours is.

    The caller executes them all and marks each as pending (``mark_pending``) before it calls again."""
    live.tidy(state)
    if state.epoch != epoch:
        return []
    actions = [
        *_consumers(state, live, now),
        *_routes(state, live, config),
        *_attempts(state, live, now, config, stamp, epoch),
        *_ends(state, live, now, stamp, epoch),
        *_zombies(state, live, now, stamp, epoch),
        *_hellos(state, live, now, stamp, epoch),
    ]
    wanted = [action for action in actions if action.key not in live.pending]
    ending = {action.key for action in wanted}
    return wanted + list(_releases(state, live, now, config, stamp, epoch, ending))


def mark_pending(live: Live, actions: list[Action]) -> None:
    """From now on these are on their way; ``live.stored`` or ``live.not_stored`` ends that. Controls are never pending."""
    for action in actions:
        if not isinstance(action, Tell):
            live.pending[action.key] = None


def _consumers(state: RouterState, live: Live, now: float) -> Iterator[Action]:
    """A group for each (capability, model) that somebody serves, a lane for each worker, before anything is released to it;
    none for what nobody has held for an hour."""
    held = _held(state)
    for durable, (slots, config) in held.items():
        live.unheld.pop(durable, None)
        if live.confirmed.get(durable, 0) < slots:
            yield EnsureConsumer(durable, slots, config())
    for durable in live.confirmed:
        if durable not in held and now - live.unheld.setdefault(durable, now) > UNHELD_S:
            yield DropConsumer(durable)


def _held(state: RouterState) -> dict[str, tuple[int, Callable[[], dict[str, Any]]]]:
    """Durable name -> its holders' slots and how it is configured."""
    held: dict[str, tuple[int, Callable[[], dict[str, Any]]]] = {}
    members: dict[tuple[str, str], int] = {}
    for worker, record in state.workers.items():
        if record.left:
            continue
        slots = record.report.slots
        held[lane_durable(worker)] = (slots, partial(lane_consumer, worker, slots=slots))
        for info in served(record.report):
            members[info.capability, info.name] = members.get((info.capability, info.name), 0) + slots
    for (capability, model), slots in members.items():
        config = partial(group_consumer, capability, model, cap=slots, members=slots)
        held[group_durable(capability, model)] = (slots, config)
    return held


def _routes(state: RouterState, live: Live, config: Config) -> Iterator[Action]:
    """A decision for each new task. The draft lets its release follow at once: one stream keeps their order."""
    for task_id, task in state.tasks.items():
        if task.routed_seq is not None or task.terminal is not None or routed_id(task_id) in live.pending:
            continue
        routed = live.drafts.get(task_id) or config.route(task)
        if routed is not None:
            live.drafts[task_id] = routed
            yield Publish(routed, routed_id(task_id))


def _attempts(state: RouterState, live: Live, now: float, config: Config, stamp: Stamp, epoch: int) -> Iterator[Action]:
    """Put items, revoke what did not start, give up what nobody mentions, delete what must not run."""
    for key, (seq, _) in list(live.items.items()):
        attempt = state.attempt(key)
        if attempt is None or (attempt.ended and attempt.failure not in ("lost", "not_started")):
            del live.items[key]
        elif attempt.ended:
            yield DeleteItem(key, seq)  # lost or not started: nobody will ack it
    for task_id, task in list(state.tasks.items()):
        attempt = task.live
        if attempt is None:
            continue
        key = (task_id, attempt.n)
        if attempt.started:
            yield from _leased(key, task, attempt, state, live, now, config, stamp, epoch)
        else:
            yield from _unstarted(key, task, attempt, state, live, now, stamp, epoch)


def _unstarted(
    key: Key, task: Task, attempt: Attempt, state: RouterState, live: Live, now: float, stamp: Stamp, epoch: int
) -> Iterator[Action]:
    put = live.items.get(key)
    orphaned = bool(attempt.holders) and not any(_may_start(worker, attempt, state) for worker in attempt.holders)
    unwanted = task.terminal is not None or key[0] in live.cancels or key in live.revoked or orphaned
    on_its_way = f"item:{item_id(*key)}" in live.pending
    if put is None and not unwanted:
        if not on_its_way:
            yield _put(task, attempt, epoch)
        return
    overdue = put is not None and now - put[1] > attempt.start_deadline_s
    if start_id(*key) in live.pending:
        return
    if overdue or (unwanted and not on_its_way):
        if overdue and attempt.expected in live.workers:
            live.workers[attempt.expected].suspect = True  # until its next credit
        cancelled = task.terminal is not None or key[0] in live.cancels
        detail = (
            "cancelled before it started"
            if cancelled
            else f"nobody who may serve it holds {attempt.model} any more"
            if orphaned
            else "no start within the deadline"
            if overdue
            else "delivered too often without a start"
        )
        yield Publish(
            _attempt_failed(key, task, attempt, "not_started", detail, state, stamp, epoch, None), start_id(*key)
        )


def _may_start(worker: str, attempt: Attempt, state: RouterState) -> bool:
    record = state.workers.get(worker)
    return record is not None and not record.left and attempt.model in {info.name for info in served(record.report)}


def _leased(
    key: Key, task: Task, attempt: Attempt, state: RouterState, live: Live, now: float, config: Config, stamp: Stamp, epoch: int
) -> Iterator[Action]:
    record = state.workers.get(attempt.worker or "")
    reported = record is not None and record.report.boot != attempt.boot and record.seq > attempt.started_seq
    rebooted = reported or attempt.boot in live.old_boots
    lease = live.lease(key, attempt.boot, now)
    if rebooted or now - lease.heard_at > config.lease_s:
        why = (
            f"{attempt.worker} restarted"
            if rebooted
            else f"{attempt.worker} did not mention it for {config.lease_s:.0f} s"
        )
        failed = _attempt_failed(key, task, attempt, "lost", why, state, stamp, epoch, now - lease.since)
        yield Publish(failed, fail_id(*key, epoch))


def _ends(state: RouterState, live: Live, now: float, stamp: Stamp, epoch: int) -> Iterator[Action]:
    """The router's terminal facts: cancelled, failed for good, dead, past the deadline."""
    for task_id, task in state.tasks.items():
        if task.terminal is None and (end := _end(task_id, task, live, now, stamp, epoch)) is not None:
            yield Publish(end, end_id(task_id))


def _end(
    task_id: str, task: Task, live: Live, now: float, stamp: Stamp, epoch: int
) -> TaskCancelled | TaskDead | TaskFailed | None:
    if task_id in live.cancels:
        return TaskCancelled(
            id=stamp.new_id(), at=stamp.at, by=stamp.by, cause=task.submitted.id,
            task=task_id, epoch=epoch, reason=live.cancels[task_id],
        )  # fmt: skip
    if task.live is not None:
        return None
    deadline_s = task.submitted.deadline_s
    if deadline_s is not None and now - live.seen.setdefault(task_id, now) > deadline_s:
        return TaskFailed(
            id=stamp.new_id(), at=stamp.at, by=stamp.by, cause=task.submitted.id, task=task_id, epoch=epoch,
            failure="busy", attempts=len(task.failures), detail=f"not started within its deadline of {deadline_s:g} s",
        )  # fmt: skip
    if not task.attempts:
        return None
    last = task.attempts[max(task.attempts)]
    failures = task.failures
    if last.failure in FINAL or (last.started and not task.retryable):
        return TaskFailed(
            id=stamp.new_id(), at=stamp.at, by=stamp.by, cause=task.submitted.id,
            task=task_id, epoch=epoch, failure=last.failure or "protocol", attempts=len(failures),
            detail=f"{last.worker} said {last.failure}, which another machine would say too",
        )  # fmt: skip
    if len(failures) >= MAX_STARTED:
        return TaskDead(
            id=stamp.new_id(), at=stamp.at, by=stamp.by, cause=task.submitted.id, task=task_id, epoch=epoch,
            attempts=len(failures), failures=failures, detail=f"gave up after {len(failures)} started attempts",
        )  # fmt: skip
    if last.failure == "refused" or (last.started and last.failure not in ("lost", "fenced")):
        pause = BACKOFF_S[min(max(len(failures), 1), len(BACKOFF_S)) - 1]
        live.retry_at.setdefault((task_id, task.next_attempt), now + pause)
    return None


def _zombies(state: RouterState, live: Live, now: float, stamp: Stamp, epoch: int) -> Iterator[Action]:
    """Cancel, and repeat while a credit lists it, whatever runs although its attempt or task has ended."""
    for worker, heard in live.workers.items():
        if heard.credit is None or now - heard.heard_at > FRESH_S:
            continue  # nobody there to listen
        for running in heard.credit.running:
            key = (running.task, running.attempt)
            task, attempt = state.task(key[0]), state.attempt(key)
            unwanted = attempt is None or attempt.ended or (task is not None and task.terminal is not None)
            told = ("cancel", *key)
            if unwanted and running.phase != "ending" and now - live.told.get(told, -REPEAT_S) >= REPEAT_S:
                live.told[told] = now
                yield Tell(worker, Control(command="cancel", router=stamp.by, epoch=epoch, task=key[0], attempt=key[1]))
    if len(live.told) > 1_000:
        live.told = {k: at for k, at in live.told.items() if now - at < REPEAT_S}


def _hellos(state: RouterState, live: Live, now: float, stamp: Stamp, epoch: int) -> Iterator[Action]:
    """Tell each worker that is there which consumers are confirmed, until its credit shows that it has armed them; ask
    whom the log does not know for a report."""
    held: dict[str, tuple[int, Callable[[], dict[str, Any]]]] = {}
    for worker, heard in live.workers.items():
        credit, record = heard.credit, state.workers.get(worker)
        if credit is None or credit.draining or now - heard.heard_at > FRESH_S:
            continue
        unreported = record is None or record.left or record.report.boot != heard.boot
        armable = () if record is None else _armable(worker, record, live)
        missing = [durable for durable in armable if durable not in credit.armed]
        if not missing and not unreported:
            live.greeted.pop(worker, None)
            continue
        at, times = live.greeted.get(worker, (now - REPEAT_S, 0))
        if now - at < REPEAT_S:
            continue
        live.greeted[worker] = (now, times + 1)
        yield Tell(
            worker,
            Control(command="hello", router=stamp.by, epoch=epoch, armable=armable, want_report=unreported and times > 0),
        )
        if times and times % HELLOS_BEFORE_DOUBT == 0 and not unreported:
            held = held or _held(state)
            yield from (EnsureConsumer(d, held[d][0], held[d][1]()) for d in missing if d in held)


def _armable(worker: str, record: WorkerRecord, live: Live) -> tuple[str, ...]:
    wanted = [group_durable(info.capability, info.name) for info in served(record.report)] + [lane_durable(worker)]
    return tuple(durable for durable in wanted if durable in live.confirmed)


def _releases(
    state: RouterState, live: Live, now: float, config: Config, stamp: Stamp, epoch: int, ending: set[str]
) -> Iterator[Action]:
    """As many as there are free credits; tasks with an end or a release on its way are left alone."""
    if any(key.endswith(".rel") for key in live.pending) or not any(available(state, live, now).values()):
        return  # releases on their way hold permits and credits that the fold does not show yet
    waiting = queue(state, live)
    skip = frozenset(
        t.submitted.task
        for t in waiting
        if t.submitted.task in live.cancels
        or end_id(t.submitted.task) in live.pending
        or end_id(t.submitted.task) in ending
        or len(t.failures) >= MAX_STARTED
        or (bool(t.attempts) and (t.attempts[max(t.attempts)].failure in FINAL or not t.retryable))
    )
    planned = plan(state, live, now, config.limits, skip, holders=config.holders, explain=False)
    for task_id, n in planned.bypasses.items():
        live.waits.setdefault(task_id, Wait()).bypasses += n
    for release in planned.releases:
        task = state.tasks[release.task]
        event = config.decorate(_released(release, task, live, config, stamp, epoch), task)
        yield Publish(event, release_id(release.task, release.attempt))


def _released(r: Release, task: Task, live: Live, config: Config, stamp: Stamp, epoch: int) -> TaskReleased:
    wait = live.waits.get(r.task) or Wait()
    return TaskReleased(
        id=stamp.new_id(), at=stamp.at, by=stamp.by, cause=task.submitted.id,
        task=r.task, attempt=r.attempt, epoch=epoch, model=r.model, reason=r.reason, capability=r.capability,
        lane=r.lane, expected_worker=r.expected, holders=r.holders, permits=r.permits,
        waited_s=max(0.0, stamp.at - task.at_us / 1e6), deadline_s=config.start_deadline_s,
        held_s={code: round(s, 3) for code, s in wait.held_s.items()}, bypasses=wait.bypasses,
    )  # fmt: skip


def _put(task: Task, attempt: Attempt, epoch: int) -> PutItem:
    s = task.submitted
    key = (s.task, attempt.n)
    item = WorkItem(
        task=s.task, attempt=attempt.n, epoch=attempt.epoch, model=attempt.model, capability=attempt.capability,
        lane=attempt.lane, holders=attempt.holders, domain=s.domain.label, language=s.language, kind=s.kind,
        urgency=s.urgency, client=s.client, session=s.session, options=s.options, context=s.wants.context,
        body=s.payload.subject,
    )  # fmt: skip
    subject = item_subject(attempt.capability, attempt.model, attempt.lane, *key)
    return PutItem(key, item, subject, item_id(*key), look_first=attempt.epoch != epoch)


def _attempt_failed(
    key: Key, task: Task, attempt: Attempt, failure: FailureClass, detail: str,
    state: RouterState, stamp: Stamp, epoch: int, elapsed_s: float | None,
) -> AttemptFailed:  # fmt: skip
    """A failure that the router saw, with what a sample of it needs."""
    worker = attempt.worker or attempt.expected
    record = state.workers.get(worker or "")
    models = record.report.models if record is not None else ()
    return AttemptFailed(
        id=stamp.new_id(), at=stamp.at, by=stamp.by, task=key[0], attempt=key[1], worker=worker, epoch=epoch,
        failure=failure, retryable=True, tokens=attempt.tokens, detail=detail, model=attempt.model,
        digest=next((info.digest for info in models if info.name == attempt.model), None),
        domain=task.submitted.domain.label, elapsed_s=elapsed_s,
    )  # fmt: skip


def snapshot(state: RouterState) -> bytes:
    """What a restarted router needs besides the tail of the log."""
    return msgspec.json.encode(state.without_recent())


def restore(data: bytes) -> RouterState:
    """The inverse of ``snapshot``. Raises msgspec.DecodeError; the router then starts from the beginning of the log."""
    return msgspec.json.decode(data, type=RouterState)
