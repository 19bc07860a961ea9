"""Who could have read a prompt that was too long for the model that it came to?

A prompt that no estimate can call too long is only refused by the model's own server, and that knows no other. Pure but for the
look at the fleet.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from schemas.events import Kind
from schemas.overlong import is_overlong
from services.router.fleet import Fleet
from services.router.http.problems import Problem, problem_of_end
from services.router.port import TaskStatus

NAMED = 5
EMBEDDING = "embedding"


def problem_in(fleet_now: Callable[[], Fleet], status: TaskStatus) -> Problem | None:
    """``problem_of_end``, with the models of longer windows where that is what was missing; only then the fleet is looked at."""
    problem = problem_of_end(status)
    if problem is None or problem.code != "rejected" or not is_overlong(problem.message):
        return problem
    fleet = fleet_now()
    windows = {name: known for name in fleet.models() if (known := _windows(fleet, name, status.kind))}
    if status.model not in windows:
        return problem
    had = min(windows[status.model])
    longer = sorted((-max(known), name) for name, known in windows.items() if max(known) > had)
    names = ", ".join(f"{name} ({-window} tokens)" for window, name in longer[:NAMED])
    words = f"these have longer windows: {names}" if names else "no model in the fleet is known to have a longer window"
    return msgspec.structs.replace(problem, message=f"{problem.message}; {words}")


def _windows(fleet: Fleet, model: str, kind: Kind) -> tuple[int, ...]:
    """Those that are known of its holders; none of a model that is for something else."""
    infos = [worker.models[model] for worker in fleet.holders(model)]
    return tuple(
        info.context
        for info in infos
        if info.context is not None and (info.capability == EMBEDDING) == (kind == EMBEDDING)
    )
