"""The promises, checked from the log alone and without the router's fold, so that one mistake cannot hide in both."""

from __future__ import annotations

from collections import Counter

from schemas.events import (
    AnyEvent,
    AttemptFailed,
    DispatcherElected,
    TaskCancelled,
    TaskCompleted,
    TaskDead,
    TaskFailed,
    TaskReleased,
    TaskStarted,
    TaskSubmitted,
    WorkerReported,
    type_of,
)
from services.router.dispatch.permits import Limits


def check_log(events: list[AnyEvent], limits: Limits) -> tuple[list[str], dict[str, int]]:
    """Violations of: one terminal fact per task, one start per attempt and none after its revocation, no permit above its
    limit at any prefix of the log, none left out that a release needs, and no start without a release that counts, or by a
    machine outside its permits."""
    violations: list[str] = []
    ends: Counter[str] = Counter()
    starts: Counter[tuple[str, int]] = Counter()
    live: dict[tuple[str, int], tuple[str, ...]] = {}
    seen: set[tuple[str, int]] = set()
    revoked: set[tuple[str, int]] = set()
    accepted: set[tuple[str, int]] = set()
    backends: dict[str, str] = {}
    clients: dict[str, str] = {}
    epoch = 0
    for event in events:
        if isinstance(event, DispatcherElected):
            epoch = max(epoch, event.epoch)
        elif isinstance(event, WorkerReported):
            backends[event.worker] = event.backend_id or event.worker
        elif isinstance(event, TaskSubmitted):
            clients[event.task] = event.client
        elif isinstance(event, TaskReleased):
            key = (event.task, event.attempt)
            busy = any(task == event.task for task, _ in live)
            if event.epoch >= epoch and not busy and not ends[event.task] and key not in seen:
                live[key] = event.permits
                accepted.add(key)
                violations += _missing(event, clients.get(event.task))
            seen.add(key)
            violations += _above(live, limits)
        elif isinstance(event, TaskStarted):
            key = (event.task, event.attempt)
            starts[key] += 1
            if key in revoked:
                violations.append(f"{key} started after it was revoked")
            if key not in accepted:
                violations.append(f"{key} started without a release that counts")
            if key in live:
                mine = f"backend:{backends.get(event.worker, event.worker)}"
                if mine not in live[key] and any(p.startswith("backend:") for p in live[key]):
                    violations.append(f"{key} started on {event.worker}, which is outside {live[key]}")
                live[key] = tuple(p for p in live[key] if not p.startswith("backend:") or p == mine)
        elif isinstance(event, AttemptFailed):
            if event.failure == "not_started":
                revoked.add((event.task, event.attempt))
            if not (event.failure == "lost" and event.epoch is not None and event.epoch < epoch):
                live.pop((event.task, event.attempt), None)
        elif isinstance(event, TaskCompleted | TaskFailed | TaskCancelled | TaskDead):
            ends[event.task] += 1
            if isinstance(event, TaskCompleted):
                live.pop((event.task, event.attempt), None)
    violations += [f"{task} has {n} terminal facts" for task, n in ends.items() if n > 1]
    violations += [f"{key} has {n} starts" for key, n in starts.items() if n > 1]
    violations += [f"{key} never ended and holds {permits}" for key, permits in live.items()]
    return violations, dict(Counter(_kind(event) for event in events))


def _kind(event: AnyEvent) -> str:
    return f"attempt.failed/{event.failure}" if isinstance(event, AttemptFailed) else type_of(event)


def _missing(event: TaskReleased, client: str | None) -> list[str]:
    """What is not taken is never above its limit."""
    needed = [f"model:{event.model}"] + ([] if client is None else [f"client:{client}"])
    key = (event.task, event.attempt)
    return [f"{key} was released without its permit {permit}" for permit in needed if permit not in event.permits]


def _above(live: dict[tuple[str, int], tuple[str, ...]], limits: Limits) -> list[str]:
    held = Counter(permit for permits in live.values() for permit in permits)
    found = []
    for permit, count in held.items():
        cap = limits.kind(permit).of(permit.split(":", 1)[1])
        if cap is not None and count > cap:
            found.append(f"{permit} is held {count} times, its limit is {cap}")
    for kind in ("model", "client", "backend"):
        total, count = limits.kind(f"{kind}:").total, sum(n for p, n in held.items() if p.startswith(f"{kind}:"))
        if total is not None and count > total:
            found.append(f"{count} permits of kind {kind} are held, the limit in total is {total}")
    return found
