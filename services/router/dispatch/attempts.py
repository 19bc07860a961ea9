"""What becomes of released attempts: items put, starts awaited, leases watched, zombies cancelled.

Answers "is this attempt still on its way to an end?" (PROTOCOL.md, "Only the router retries"). Every revocation goes under the
claim's own message id, so that the stream decides between a start and a revocation; nothing here is a retry by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas.events import AttemptFailed, FailureClass
from schemas.subjects import fail_id, item_id, item_subject, start_id
from schemas.work import Control, WorkItem
from services.router.dispatch.actions import Action, DeleteItem, Publish, PutItem, Tell
from services.router.dispatch.live import FRESH_S
from services.router.dispatch.state import Attempt, Key, RouterState, Task, served
from services.router.dispatch.turn import REPEAT_S, Turn

STRANGE_S = 10.0
"""How long an attempt may run that the log does not know: twice what a feed takes to notice that it is broken."""


def attempts(turn: Turn) -> Iterator[Action]:
    """Put items, revoke what did not start, give up what nobody mentions, delete what must not run."""
    items, glance = turn.live.items, turn.glance
    for key in sorted(items.keys() - glance.live):
        ended = turn.state.attempt(key)
        if ended is None or ended.failure not in ("lost", "not_started"):
            del items[key]
        else:
            yield DeleteItem(key, items[key][0])  # lost or not started: nobody will ack it
    for task, attempt in glance.unstarted:
        yield from _unstarted(turn, task, attempt)
    boots = {worker: record.report.boot for worker, record in turn.state.workers.items()}
    for task, attempt in glance.started:
        if attempt.boot != boots.get(attempt.worker or "") or not _is_fresh(turn, (task.submitted.task, attempt.n)):
            yield from _leased(turn, task, attempt)


def _unstarted(turn: Turn, task: Task, attempt: Attempt) -> Iterator[Action]:
    live, key = turn.live, (task.submitted.task, attempt.n)
    put = live.items.get(key)
    unwanted = _unwanted(turn, task, attempt, key)
    on_its_way = f"item:{item_id(*key)}" in live.pending
    if put is None and unwanted is None:
        if not on_its_way:
            yield _put(task, attempt, turn.epoch)
        return
    overdue = put is not None and turn.now - put[1] > attempt.start_deadline_s
    if start_id(*key) in live.pending:
        return
    if overdue or (unwanted is not None and not on_its_way):
        if overdue and attempt.expected in live.workers:
            live.workers[attempt.expected].suspect = True  # until its next credit
        detail = unwanted or "no start within the deadline"
        yield Publish(_failed(turn, task, attempt, "not_started", detail, None), start_id(*key))


def _unwanted(turn: Turn, task: Task, attempt: Attempt, key: Key) -> str | None:
    """Why an attempt that has not started must not start; None while it may."""
    if task.terminal is not None or key[0] in turn.live.cancels:
        return "cancelled before it started"
    if key in turn.live.revoked:
        return "delivered too often without a start"
    if attempt.holders and not any(_may_start(turn.state, worker, attempt) for worker in attempt.holders):
        return f"nobody who may serve it holds {attempt.model} any more"
    return None


def _may_start(state: RouterState, worker: str, attempt: Attempt) -> bool:
    record = state.workers.get(worker)
    return record is not None and not record.left and any(m.name == attempt.model for m in served(record.report))


def _is_fresh(turn: Turn, key: Key) -> bool:
    """Its machine mentioned it lately, and is the one that started it for all that was heard."""
    lease = turn.live.leases.get(key)
    return (
        lease is not None and lease.boot not in turn.live.old_boots and turn.now - lease.heard_at <= turn.config.lease_s
    )


def _leased(turn: Turn, task: Task, attempt: Attempt) -> Iterator[Action]:
    key = (task.submitted.task, attempt.n)
    record = turn.state.workers.get(attempt.worker or "")
    reported = record is not None and record.report.boot != attempt.boot and record.seq > attempt.started_seq
    lease = turn.live.lease(key, attempt.boot, turn.now)
    if reported or attempt.boot in turn.live.old_boots:
        why = f"{attempt.worker} restarted"
    elif turn.now - lease.heard_at > turn.config.lease_s:
        why = f"{attempt.worker} did not mention it for {turn.config.lease_s:.0f} s"
    else:
        return
    yield Publish(_failed(turn, task, attempt, "lost", why, turn.now - lease.since), fail_id(*key, turn.epoch))


def _failed(
    turn: Turn, task: Task, attempt: Attempt, failure: FailureClass, detail: str, elapsed_s: float | None
) -> AttemptFailed:
    """A failure that the router saw, with what a sample of it needs."""
    worker = attempt.worker or attempt.expected
    record = turn.state.workers.get(worker or "")
    models = record.report.models if record is not None else ()
    return AttemptFailed(
        **turn.envelope(), task=task.submitted.task, attempt=attempt.n, worker=worker, failure=failure, retryable=True,
        tokens=attempt.tokens, detail=detail, model=attempt.model, domain=task.submitted.domain.label,
        digest=next((info.digest for info in models if info.name == attempt.model), None), elapsed_s=elapsed_s,
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


def _is_zombie(turn: Turn, key: Key) -> bool:
    """It runs although the log says that its attempt or task has ended; or the log has not known it for a while. Not sooner:
    another router may have released it, and its credit come before its release (a deposed router that wakes up)."""
    task, attempt = turn.state.task(key[0]), turn.state.attempt(key)
    if attempt is None and (task is None or task.terminal is None):
        return turn.now - turn.live.strangers.setdefault(key, turn.now) > STRANGE_S
    return attempt is None or attempt.ended or (task is not None and task.terminal is not None)


def zombies(turn: Turn) -> Iterator[Action]:
    """Cancel, and repeat while a credit lists it, whatever runs although its attempt or task has ended."""
    live, now = turn.live, turn.now
    for worker, heard in live.workers.items():
        if heard.credit is None or now - heard.heard_at > FRESH_S:
            continue  # nobody there to listen
        for running in heard.credit.running:
            key = (running.task, running.attempt)
            if key in turn.glance.wanted:
                continue
            told = ("cancel", *key)
            if _is_zombie(turn, key) and running.phase != "ending" and now - live.told.get(told, -REPEAT_S) >= REPEAT_S:
                live.told[told] = now
                yield Tell(
                    worker,
                    Control(command="cancel", router=turn.stamp.by, epoch=turn.epoch, task=key[0], attempt=key[1]),
                )
    live.strangers = {key: at for key, at in live.strangers.items() if now - at < 2 * STRANGE_S}
    if len(live.told) > 1_000:
        live.told = {k: at for k, at in live.told.items() if now - at < REPEAT_S}
