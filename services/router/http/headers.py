"""The ``x-headrace-*`` headers: which task, what it is about, who answers and why. Values are ASCII whatever the names are."""

from __future__ import annotations

from urllib.parse import quote

from services.router.port import RouterPort, Submitted, TaskStatus

VALUE_CHARS_MAX = 200
"""A reason is a sentence. Proxies refuse headers above 4 KiB in all, and a Japanese character takes nine when encoded."""

_PLAIN = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


def task_headers(router: RouterPort, submitted: Submitted, status: TaskStatus | None) -> dict[str, str]:
    """``x-headrace-worker`` only once the task has started, ``x-headrace-expected-worker`` before. Workers by name."""
    choice = status.choice if status is not None and status.choice is not None else None
    if choice is None and submitted.decision is not None:
        choice = submitted.decision.choice
    values: dict[str, str | None] = {
        "x-headrace-task": submitted.task,
        "x-headrace-domain": (status.domain if status is not None else None) or submitted.domain.label,
        "x-headrace-model": (status.model if status is not None else None) or (choice.model if choice else None),
        "x-headrace-reason": choice.reason if choice else None,
        "x-headrace-warning": submitted.warning,
    }
    if status is not None and status.worker is not None:
        values["x-headrace-worker"] = worker_name(router, status.worker)
    else:
        expected = (status.expected_worker if status is not None else None) or (choice.worker if choice else None)
        values["x-headrace-expected-worker"] = worker_name(router, expected)
    return {name: header_value(value) for name, value in values.items() if value}


def header_value(text: str) -> str:
    """Percent-encoded UTF-8 outside printable ASCII: a header is Latin-1 by its standard, and a line break would split it."""
    return quote(text.strip()[:VALUE_CHARS_MAX], safe=_PLAIN)


def worker_name(router: RouterPort, worker: str | None) -> str | None:
    """The name shown for a worker's id; the id itself where the fleet has forgotten it."""
    if worker is None:
        return None
    view = router.fleet().workers.get(worker)
    return view.name if view is not None else worker
