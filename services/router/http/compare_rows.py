"""A comparison as JSON: its answers with what was predicted of each and what it took, and the verdicts on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from schemas.events import Candidate, QualityJudged, Removal, TaskSubmitted
from schemas.work import Answer
from services.router.compare import spent
from services.router.http.headers import worker_name
from services.router.http.task_stream import end_of
from services.router.port import RouterPort, TaskStatus

ENDS = ("completed", "failed", "cancelled", "dead")


def entry_row(router: RouterPort, number: int, task: str, candidate: Candidate) -> dict[str, Any]:
    return {
        "entry": number, "task": task, "model": candidate.model, "worker": candidate.worker,
        "worker_name": worker_name(router, candidate.worker), "predicted": candidate.predicted,
        "cost_s": candidate.cost_s, "quality": candidate.quality, "resident": candidate.resident,
    }  # fmt: skip


def removed_rows(router: RouterPort, removed: Sequence[Removal]) -> list[dict[str, Any]]:
    return [
        {"model": r.model, "worker": r.worker, "worker_name": worker_name(router, r.worker), "reason": r.reason}
        for r in removed
    ]


def ended_row(
    router: RouterPort, status: TaskStatus, answer: Answer | None, candidate: Candidate | None
) -> dict[str, Any]:
    """As the task's own end, and what it took; null where it did not complete."""
    return {**end_of(router, status, answer), "spent": spent(status, candidate)}


async def compared(router: RouterPort, compare: str, tasks: Sequence[str]) -> dict[str, Any]:
    """What is known afterwards, from the tasks themselves."""
    entries: list[dict[str, Any]] = []
    numbers: dict[str, int] = {}
    verdicts: dict[tuple[object, ...], QualityJudged] = {}
    domain: str | None = None
    for task in tasks:
        found = await router.explain(task)
        if found is None:
            continue
        status, routed, events = found
        asked = next((event for event in events if isinstance(event, TaskSubmitted)), None)
        if asked is not None and asked.bench is not None:
            continue  # a judge's word, which the verdicts are made of
        numbers[task] = len(entries) + 1
        domain = domain or status.domain
        candidate = next(iter(routed.candidates), None) if routed is not None else None
        told = entry_row(router, numbers[task], task, candidate) if candidate is not None else {"entry": numbers[task]}
        answer = await router.answer(task) if status.state == "completed" else None
        entries.append(told | ended_row(router, status, answer, candidate))
        judged = (event for event in events if isinstance(event, QualityJudged) and event.tasks[:1] == (task,))
        verdicts |= {(e.source, e.judge, e.client, e.signal, e.tasks): e for e in judged}  # the latest word counts
    return {
        "compare": compare,
        "state": "ended" if all(entry["status"].state in ENDS for entry in entries) else "running",
        "domain": domain,
        "entries": entries,
        "judged": [row for event in verdicts.values() if (row := _verdict(event, numbers)) is not None],
    }


def _verdict(event: QualityJudged, numbers: dict[str, int]) -> dict[str, Any] | None:
    """A pair from its first side; a rating of one answer alone; no second side, which says the same, and no word that was
    taken back."""
    peer = numbers.get(event.tasks[1]) if len(event.tasks) > 1 else None
    if event.source == "thumb" and not event.weight:
        return None
    if event.peer is not None and (
        peer is None or event.value < 0.5 or (event.value == 0.5 and event.id.endswith(".b"))
    ):
        return None
    return {
        "source": event.source, "first": numbers[event.tasks[0]], "second": peer, "value": event.value,
        "judge": event.judge, "client": event.client, "signal": event.signal, "picks": event.picks, "kin": event.kin,
        "weight": event.weight, "words": event.comment,
    }  # fmt: skip
