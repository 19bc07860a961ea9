"""From the fold and the live view to values that people and policies read: the fleet, a task's status, the queue.

Answers "how does it look now?". Pure: ages and waits come from the ``now`` that is handed in (heard time).
"""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.events import Credit, TaskCancelled, TaskCompleted, TaskDead, TaskFailed, Terminal, WorkerLoad
from schemas.statistics import Statistics, effective, service_seconds
from services.router.dispatch.completion import left_s
from services.router.dispatch.live import ALIVE_S, FRESH_S, Heard, Live
from services.router.dispatch.order import ORDER_K, queue
from services.router.dispatch.planner import Plan
from services.router.dispatch.state import Attempt, RouterState, Task
from services.router.dispatch.worker_record import WorkerRecord
from services.router.fleet import Fleet, WorkerView
from services.router.port import TaskStatus


def fleet_of(state: RouterState, live: Live, stats: Statistics, now: float, now_us: int) -> Fleet:
    """Every worker that reported and did not leave."""
    return Fleet(
        workers={
            worker: _view(worker, record, state, live.workers.get(worker), stats, now, now_us)
            for worker, record in state.workers.items()
            if not record.left
        }
    )


def _view(
    worker: str,
    record: WorkerRecord,
    state: RouterState,
    heard: Heard | None,
    stats: Statistics,
    now: float,
    now_us: int,
) -> WorkerView:
    report, credit = record.report, heard.credit if heard else None
    load = heard.load if heard else None
    fresh_load = load is not None and heard is not None and now - heard.load_at <= FRESH_S
    resident = load.resident if load is not None and fresh_load else None
    backend_up = load.backend_up if load is not None and fresh_load else None
    return WorkerView(
        id=worker,
        name=report.name,
        boot=report.boot,
        supports=report.supports,
        models={model.name: model for model in report.models},
        slots=report.slots,
        free=credit.free if credit else None,
        running=len(credit.running) if credit else None,
        wait_s=None if backend_up is False else _wait_s(worker, credit, state, stats, now_us, heard, now),
        resident=frozenset(resident) if resident is not None else None,
        loaded={each.model: each for each in load.loaded} if load is not None and fresh_load else {},
        others_use=load.others_use if load is not None and fresh_load else None,
        others_reason=_others_reason(load is not None, fresh_load, load.unreadable.get("others_use") if load else None),
        credit_age_s=now - heard.credit_at if heard and credit else None,
        armed=credit.armed if credit else {},
        local=report.local,
        backend=report.backend,
        backend_id=report.backend_id,
        backend_up=backend_up,
        backend_reason=_backend_reason(load) if load is not None and backend_up is False else None,
        alive=heard is not None and not heard.suspect and now - heard.heard_at <= max(ALIVE_S, FRESH_S),
        fresh=fresh_load or (credit is not None and heard is not None and now - heard.credit_at <= FRESH_S),
        draining=credit.draining if credit else False,
        paused=record.paused,
        paused_until_us=record.paused_until_us,
    )


def _others_reason(heard: bool, fresh: bool, unreadable: str | None) -> str | None:
    if not heard:
        return "no heartbeat heard yet"
    return unreadable if fresh else f"the last load is older than {FRESH_S:.0f} s"


def _backend_reason(load: WorkerLoad) -> str:
    told = load.unreadable.get("backend_up") or load.unreadable.get("credit.free")
    return told or "its heartbeat does not say why"


def _wait_s(
    worker: str,
    credit: Credit | None,
    state: RouterState,
    stats: Statistics,
    now_us: int,
    heard: Heard | None,
    now: float,
) -> float | None:
    """Until the next slot is free, from what runs there: max(predicted - elapsed, 0.15 elapsed, 0.1 s) (ROUTING.md B3.4)."""
    if credit is None or heard is None:
        return None
    if credit.free > 0 or not credit.running:
        return 0.0
    ends = []
    for running in credit.running:
        attempt = state.attempt((running.task, running.attempt))
        task = state.task(running.task)
        if attempt is not None and attempt.ended:
            return 0.0  # its end is in the log; the worker's next credit is on its way
        if attempt is None or task is None:
            continue
        found = effective(stats, attempt.model, task.submitted.domain.label, worker, model_bytes=None, now_us=now_us)
        predicted = service_seconds(found, resident=True, prompt_tokens=task.submitted.sizes.prompt_tokens)
        elapsed = (running.elapsed_s or 0.0) + (now - heard.credit_at)
        ends.append(max(predicted - elapsed, 0.15 * elapsed, 0.1))
    return min(ends) if ends else None


def status_of(
    task: Task,
    *,
    now_us: int,
    position: int | None = None,
    reason: str | None = None,
    eta_s: float | None = None,
    planned: tuple[str, str] | None = None,
) -> TaskStatus:
    """One task as surfaces show it. What waits has waited since it came, whatever was tried meanwhile; ``planned`` is the model
    and the machine that it waits for now, which goes before the decision's first idea."""
    submitted, live, terminal = task.submitted, task.live, task.terminal
    last = task.attempts[max(task.attempts)] if task.attempts else None
    status = TaskStatus(
        task=submitted.task,
        state="waiting" if live is None else "running" if live.started else "released",
        client=submitted.client,
        kind=submitted.kind,
        domain=submitted.domain.label,
        language=submitted.language,
        model=last.model if last else (task.choice.model if task.choice else submitted.wants.model),
        worker=live.worker if live else None,
        expected_worker=(last.expected if last else None) or (task.choice.worker if task.choice else None),
        choice=task.choice,
        attempt=last.n if last else 0,
        position=position if live is None else None,
        reason=reason if live is None else None,
        eta_s=eta_s if live is None else None,
        waited_s=max(0.0, (_waited_until(task, now_us) - task.at_us) / 1e6),
    )
    if planned is not None and status.state == "waiting":
        status = msgspec.structs.replace(status, model=planned[0], expected_worker=planned[1])
    changes = _running(live, now_us) | _ended(terminal)
    return msgspec.structs.replace(status, **changes) if changes else status


def _waited_until(task: Task, now_us: int) -> int:
    """What never left the queue waited until its end; both ends by the clock of whoever told them."""
    if task.attempts and (task.live is not None or task.terminal is not None):
        return task.attempts[max(task.attempts)].released_us
    if task.terminal is not None:
        return task.at_us + int((task.terminal.at - task.submitted.at) * 1e6)
    return now_us


def _running(attempt: Attempt | None, now_us: int) -> dict[str, Any]:
    """How long it has run, and how long it will by what its release predicted; of another machine nothing was predicted."""
    if attempt is None or attempt.started_us is None:
        return {}
    ran_s = max(0.0, (now_us - attempt.started_us) / 1e6)
    predicted_s = attempt.service_s if attempt.worker == attempt.expected else None
    if predicted_s is None:
        return {"ran_s": ran_s}
    late_s = ran_s - predicted_s
    return {"ran_s": ran_s, "ends_s": left_s(predicted_s, ran_s), "late_s": late_s if late_s > 0 else None}


def _ended(terminal: Terminal | None) -> dict[str, Any]:
    match terminal:
        case TaskCompleted():
            return {
                "state": "completed", "model": terminal.model, "worker": terminal.worker, "attempt": terminal.attempt,
                "outcome": terminal.outcome, "finish_reason": terminal.finish_reason, "tokens": terminal.tokens,
                "times": terminal.times, "position": None, "reason": None,
            }  # fmt: skip
        case TaskFailed():
            return {"state": "failed", "failure": terminal.failure, "detail": terminal.detail, "position": None}
        case TaskDead():
            failure = terminal.failures[-1] if terminal.failures else None
            return {"state": "dead", "failure": failure, "detail": terminal.detail, "position": None}
        case TaskCancelled():
            return {"state": "cancelled", "detail": terminal.reason, "position": None, "reason": None}
        case _:
            return {}


def queue_of(
    state: RouterState, live: Live, plan: Plan, now_us: int, order_k: float = ORDER_K
) -> tuple[TaskStatus, ...]:
    """The waiting tasks in order, with position, reason and predicted seconds to their start, then those released and running."""
    waiting = queue(state, live, order_k)
    shown = [
        status_of(
            task,
            now_us=now_us,
            position=n,
            reason=plan.holds.get(task.submitted.task),
            eta_s=plan.starts.get(task.submitted.task),
            planned=plan.machines.get(task.submitted.task),
        )
        for n, task in enumerate(waiting, 1)
    ]
    busy = [task for task in state.tasks.values() if task.live is not None]
    return tuple(shown + [status_of(task, now_us=now_us) for task in busy])
