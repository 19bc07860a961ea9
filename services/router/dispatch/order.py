"""In which order do waiting tasks leave? ``arrival + class offset + k · E[S]`` (ROUTING.md B3.5), bounded and explainable.

Answers "who is next, and how many are behind?". The key is fixed when the decision is in the log, so a place in the queue can be
told and nobody starves: once 60 fleet-seconds of later arrivals of its class have passed a task, only its arrival counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from services.router.dispatch.live import Live
from services.router.dispatch.state import RouterState, Task

CLASS_OFFSET_S = {"interactive": 0.0, "batch": 120.0, "background": 600.0}
"""Bounded offsets, because strict classes let background tasks wait for ever."""
CLASS_RANK = {"interactive": 0, "batch": 1, "background": 2}
OVERTAKEN_MOST_S = 60.0
"""Fleet-seconds of later arrivals that may pass a task for being shorter; without it a burst let 45 pass one."""
ORDER_K = 1.0
"""Seconds of queueing that one second of expected service is worth: bursts end 15 % sooner on the mean."""


def queue(state: RouterState, live: Live, k: float = ORDER_K) -> list[Task]:
    """The waiting tasks in the order in which they may leave."""
    waiting = [task for task in state.tasks.values() if task.terminal is None and task.live is None]
    return in_order(waiting, live, k)


def in_order(waiting: list[Task], live: Live, k: float, spent: Collection[str] = ()) -> list[Task]:
    """``waiting`` by key; equals by arrival. ``spent``: tasks that were passed often enough in this very pass."""
    waits, drafts = live.waits, live.drafts

    def key(task: Task) -> tuple[float, int]:
        submitted = task.submitted
        at = task.at_us / 1e6 + CLASS_OFFSET_S[submitted.urgency]
        wait = waits.get(submitted.task)
        if (wait is not None and wait.overtaken_s >= OVERTAKEN_MOST_S) or submitted.task in spent:
            return at, task.seq
        service_s = task.service_s
        if service_s is None and (draft := drafts.get(submitted.task)) is not None:
            service_s = draft.service_s
        return at + k * (service_s or 0.0), task.seq

    return sorted(waiting, key=key)


def service_of(task: Task, live: Live) -> float:
    """E[S] of the decision, in the log or on its way there; 0 while there is none."""
    if task.service_s is not None:
        return task.service_s
    draft = live.drafts.get(task.submitted.task)
    return (draft.service_s or 0.0) if draft is not None else 0.0


def behind(ordered: Sequence[Task]) -> list[int]:
    """N of ROUTING.md B3.6 for each: the tasks behind it in the same or a more urgent class."""
    counts, result = [0, 0, 0], [0] * len(ordered)
    for index in range(len(ordered) - 1, -1, -1):
        rank = CLASS_RANK[ordered[index].submitted.urgency]
        result[index] = sum(counts[: rank + 1])
        counts[rank] += 1
    return result
