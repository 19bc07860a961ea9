"""What would happen to a task that came now?

Answers "would it start at once, and if not, why and when?" by asking the planner itself: the task is put into the queue in
thought, the pass is made, and nothing is kept. A preview that priced the machines alone would not know of those who wait.
"""

from __future__ import annotations

import msgspec

from schemas.events import TaskRouted, TaskSubmitted
from services.router.dispatch.live import Live
from services.router.dispatch.outlook import Outlook
from services.router.dispatch.permits import Limits
from services.router.dispatch.planner import WINDOW_SHOWN, plan, queue
from services.router.dispatch.state import RouterState, Task


class Prospect(msgspec.Struct, frozen=True, kw_only=True):
    """``starts_s`` 0: at once, on ``worker`` with ``model``; else the predicted seconds until it starts, None where nobody knows,
    and ``reason``, a hold's code and words; ``model`` and ``worker`` are then what it would wait for.
    ``place`` counts from 1 among the ``waiting``, itself included."""

    starts_s: float | None
    place: int
    waiting: int
    reason: str | None = None
    model: str | None = None
    worker: str | None = None


def prospect(
    submitted: TaskSubmitted,
    routed: TaskRouted,
    state: RouterState,
    live: Live,
    now: float,
    limits: Limits,
    outlook: Outlook,
) -> Prospect:
    """``submitted`` and ``routed`` are what would be stored; ``state`` and ``live`` stay as they are."""
    name, seq = submitted.task, state.position + 1
    task = Task(
        submitted=submitted,
        seq=seq,
        at_us=int(submitted.at * 1e6),
        routed_seq=seq,
        choice=routed.choice,
        service_s=routed.service_s,
        models=tuple(dict.fromkeys(candidate.model for candidate in routed.candidates)),
        target=routed.target,
    )
    thought = msgspec.structs.replace(state, tasks={**state.tasks, name: task})
    waiting = queue(thought, live, outlook.order_k)
    place = next(n for n, each in enumerate(waiting, 1) if each.submitted.task == name)
    planned = plan(thought, live, now, limits, outlook=outlook, window=WINDOW_SHOWN)
    release = next((each for each in planned.releases if each.task == name), None)
    if release is not None:
        return Prospect(starts_s=0.0, place=place, waiting=len(waiting), model=release.model, worker=release.expected)
    model, worker = planned.machines.get(name, (None, None))
    return Prospect(
        starts_s=planned.starts.get(name), place=place, waiting=len(waiting), reason=planned.holds.get(name), model=model,
        worker=worker,
    )  # fmt: skip
