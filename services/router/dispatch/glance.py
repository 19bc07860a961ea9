"""All open tasks, looked over once: which wait, which are on their way to a start, which run, and where.

Answers "whom does this look concern?" for everything that one look does, so that each of its parts walks only those that may
need something: 64 running tasks need nothing most of the time. Values only; good until the fold takes in another fact.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from services.router.dispatch.state import Attempt, Key, RouterState, Task

Placed = list[tuple[Task, Attempt]]


@dataclass(frozen=True, slots=True)
class Glance:
    """``unrouted`` have no decision, ``waiting`` no live attempt and no end; ``unstarted`` and ``started`` are those with a live
    attempt, whose keys are ``live``, ``wanted`` without those whose task has ended. Each in the order of the tasks."""

    unrouted: list[Task] = field(default_factory=list)
    waiting: list[Task] = field(default_factory=list)
    unstarted: Placed = field(default_factory=list)
    started: Placed = field(default_factory=list)
    live: set[Key] = field(default_factory=set)
    wanted: set[Key] = field(default_factory=set)

    def placed(self) -> dict[str, Placed]:
        """Live attempts by the worker that runs them, or is meant to, in the order of their releases."""
        found: dict[str, Placed] = {}
        for one in (*self.started, *self.unstarted):
            worker = one[1].worker or one[1].expected
            if worker is not None:
                found.setdefault(worker, []).append(one)
        for there in found.values():
            there.sort(key=_released)
        return found


def glance_at(state: RouterState) -> Glance:
    found = Glance()
    for task_id, task in state.tasks.items():
        attempt = task.live
        if attempt is not None:
            (found.started if attempt.started else found.unstarted).append((task, attempt))
            found.live.add((task_id, attempt.n))
            if task.terminal is None:
                found.wanted.add((task_id, attempt.n))
        elif task.terminal is None:
            found.waiting.append(task)
        if task.routed_seq is None and task.terminal is None:
            found.unrouted.append(task)
    return found


def _released(one: tuple[Task, Attempt]) -> int:
    return one[1].released_seq
