"""The router's half of the attempt protocol: ``decide(state, live, now, ...) -> actions``, pure.

Answers "what must the dispatcher do now?", after any event, credit, answer or pulse. It can be called as often as one likes:
what is on its way (``live.pending``) is not asked for again, what was lost is asked for again under the same message id, and
which of two racing facts counts is decided by the log alone (``state``). It is deterministic; the only thing it changes is
``live``, where it notes whom it has told and whom it suspects. See PROTOCOL.md, "Only the router retries".
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from schemas.events import FailureClass, Prediction, TaskCancelled, TaskDead, TaskFailed, TaskReleased
from schemas.subjects import end_id, release_id, routed_id
from services.router.dispatch.absent import given_up, wakes
from services.router.dispatch.actions import Action, Publish, Tell
from services.router.dispatch.attempts import attempts, zombies
from services.router.dispatch.consumers import consumers, held_consumers, hellos
from services.router.dispatch.glance import glance_at
from services.router.dispatch.live import Live, Promise, Wait
from services.router.dispatch.pauses import resumes
from services.router.dispatch.planner import Release, available, plan
from services.router.dispatch.state import RouterState, Task
from services.router.dispatch.turn import Config, Stamp, Turn

BACKOFF_S = (1.0, 5.0, 30.0)
"""Waits after a backend's failures; a lost or unstarted attempt is no backend's failure and waits for nothing."""
MAX_STARTED = 3
FINAL: frozenset[FailureClass] = frozenset({"rejected"})


def decide(state: RouterState, live: Live, now: float, config: Config, stamp: Stamp, epoch: int) -> list[Action]:
    """The actions that are needed now and not on their way. Nothing while another epoch is in force, or before ours is.

    The caller executes them all and marks each as pending (``mark_pending``) before it calls again."""
    glance = glance_at(state)
    live.tidy(state, glance)
    live.note_use(glance, now)
    if state.epoch != epoch:
        return []
    live.note_seen(state, now)
    turn = Turn(state, live, now, config, stamp, epoch, glance)
    held = held_consumers(state)
    actions = [
        *consumers(turn, held),
        *_routes(turn),
        *attempts(turn),
        *_ends(turn),
        *zombies(turn),
        *hellos(turn, held),
        *resumes(turn),
        *wakes(turn),
    ]
    wanted = [action for action in actions if action.key not in live.pending]
    ending = {action.key for action in wanted}
    return wanted + list(_releases(turn, ending))


def mark_pending(live: Live, actions: list[Action]) -> None:
    """From now on these are on their way; ``live.stored`` or ``live.not_stored`` ends that. Controls are never pending."""
    for action in actions:
        if not isinstance(action, Tell):
            live.pending[action.key] = None


def _routes(turn: Turn) -> Iterator[Action]:
    """A decision for each new task. The draft lets its release follow at once: one stream keeps their order."""
    live = turn.live
    for task in turn.glance.unrouted:
        task_id = task.submitted.task
        if routed_id(task_id) in live.pending:
            continue
        routed = live.drafts.get(task_id) or turn.config.route(task)
        if routed is not None:
            live.drafts[task_id] = routed
            yield Publish(routed, routed_id(task_id))


def _ends(turn: Turn) -> Iterator[Action]:
    """The router's terminal facts: cancelled, failed for good, dead, past the deadline."""
    live, tasks = turn.live, turn.state.tasks
    running = [tasks[task_id] for task_id, _ in sorted(turn.glance.wanted) if task_id in live.cancels]
    for task in (*turn.glance.waiting, *running):
        task_id = task.submitted.task
        is_new = not task.attempts and task.submitted.deadline_s is None
        if is_new and task_id not in live.cancels and task_id not in live.waits:
            continue
        if (end := _end(turn, task_id, task)) is not None:
            yield Publish(end, end_id(task_id))


def _end(turn: Turn, task_id: str, task: Task) -> TaskCancelled | TaskDead | TaskFailed | None:
    live, now, cause = turn.live, turn.now, task.submitted.id
    if task_id in live.cancels:
        return TaskCancelled(**turn.envelope(cause), task=task_id, reason=live.cancels[task_id])
    failures = task.failures
    deadline_s = task.submitted.deadline_s
    if deadline_s is not None and now - live.seen[task_id] > deadline_s:
        return TaskFailed(
            **turn.envelope(cause), task=task_id, failure="busy", attempts=len(failures),
            detail=f"nobody was free for it within its deadline of {deadline_s:g} s",
        )  # fmt: skip
    if (gave_up := given_up(turn, task)) is not None:
        failure, why = gave_up
        return TaskFailed(**turn.envelope(cause), task=task_id, failure=failure, attempts=len(failures), detail=why)
    if not task.attempts:
        return None
    last = task.attempts[max(task.attempts)]
    if last.failure in FINAL or (last.started and not task.retryable):
        return TaskFailed(
            **turn.envelope(cause), task=task_id, failure=last.failure or "protocol", attempts=len(failures),
            detail=last.detail or f"{last.worker} said {last.failure}, which another machine would say too",
        )  # fmt: skip
    if len(failures) >= MAX_STARTED:
        return TaskDead(
            **turn.envelope(cause), task=task_id, attempts=len(failures), failures=failures,
            detail=f"gave up after {len(failures)} started attempts; the last one: {last.detail or last.failure}",
        )  # fmt: skip
    if last.failure == "refused" or (last.started and last.failure not in ("lost", "fenced")):
        pause = BACKOFF_S[min(max(len(failures), 1), len(BACKOFF_S)) - 1]
        live.retry_at.setdefault((task_id, task.next_attempt), now + pause)
    return None


def _releases(turn: Turn, ending: set[str]) -> Iterator[Action]:
    """As many as there are free credits; tasks with an end on its way are left alone."""
    state, live, now, config = turn.state, turn.live, turn.now, turn.config
    if not turn.glance.waiting:
        return  # most looks of a fleet that keeps up
    placed = turn.glance.placed()
    if not any(available(state, live, now, placed).values()):
        return
    skip = frozenset(task.submitted.task for task in turn.glance.waiting if _is_ending(turn, task, ending))
    planned = plan(state, live, now, config.limits, skip, outlook=config.outlook, explain=False, glance=turn.glance)
    for task_id, n in planned.bypasses.items():
        live.waits.setdefault(task_id, Wait()).bypasses += n
    for task_id, seconds in planned.overtaken_s.items():
        live.waits.setdefault(task_id, Wait()).overtaken_s += seconds
    for release in planned.releases:
        task = state.tasks[release.task]
        released = config.decorate(_released(turn, release, task), release, task)
        msg_id = release_id(release.task, release.attempt)
        live.promised[msg_id] = Promise(
            release.task, release.expected, release.model, release.permits, _service_s(release)
        )
        yield Publish(released, msg_id)


def _service_s(release: Release) -> float:
    return release.offer.total_s - release.offer.wait_s


def _is_ending(turn: Turn, task: Task, ending: set[str]) -> bool:
    live, task_id = turn.live, task.submitted.task
    if (
        task_id in live.cancels
        or task_id in live.bodies
        or end_id(task_id) in live.pending
        or end_id(task_id) in ending
    ):
        return True
    if not task.attempts:
        return False
    last = task.attempts[max(task.attempts)]
    return len(task.failures) >= MAX_STARTED or last.failure in FINAL or not task.retryable


def _released(turn: Turn, r: Release, task: Task) -> TaskReleased:
    wait, parts = turn.live.waits.get(r.task) or Wait(), r.offer.parts
    predicted = Prediction(
        wait_s=parts.wait_s, load_s=parts.load_s, prefill_s=parts.prefill_s, decode_s=parts.decode_s,
        sharing_s=parts.sharing_s, total_s=parts.total_s,
    )  # fmt: skip
    return TaskReleased(
        **turn.envelope(task.submitted.id), task=r.task, attempt=r.attempt, model=r.model, reason=r.reason,
        capability=r.capability, lane=r.lane, expected_worker=r.expected, holders=r.holders, permits=r.permits,
        waited_s=max(0.0, turn.stamp.at - task.at_us / 1e6), deadline_s=turn.config.start_deadline_s,
        held_s={code: round(s, 3) for code, s in wait.held_s.items()}, bypasses=wait.bypasses,
        predicted=predicted, cost_s=r.offer.cost_s, behind=r.behind, inputs=r.inputs, overtaken_s=wait.overtaken_s,
    )  # fmt: skip


def snapshot(state: RouterState) -> bytes:
    """What a restarted router needs besides the tail of the log."""
    return msgspec.json.encode(state.without_recent())


def restore(data: bytes) -> RouterState:
    """The inverse of ``snapshot``. Raises msgspec.DecodeError; the router then starts from the beginning of the log."""
    return msgspec.json.decode(data, type=RouterState)
