"""Several tasks for one request: side by side, with one parent, all of them or none.

Answers "which tasks stand for this request?". Each counts in the queue and in the limits like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from schemas.errors import HeadraceError
from services.router.http.speaking import cancel_all
from services.router.port import NewTask, RouterPort, Submitted
from services.runtime.ids import new_id

SIDE_BY_SIDE_MAX = 16
"""Choices, or prompts times choices, of one request: more would be a queue of its own."""


def copies(task: NewTask, n: int) -> list[NewTask]:
    """``n`` times the same; with a seed each has its own, since equal ones would answer alike."""
    seed = task.options.seed
    if n == 1 or seed is None:
        return [task] * n
    return [
        msgspec.structs.replace(task, options=msgspec.structs.replace(task.options, seed=seed + at)) for at in range(n)
    ]


async def submit_all(router: RouterPort, tasks: Sequence[NewTask]) -> list[Submitted]:
    """Raises what the first refusal raises; what was accepted before it is cancelled."""
    if len(tasks) == 1:
        return [await router.submit(tasks[0])]
    parent = new_id()
    accepted: list[Submitted] = []
    for task in tasks:
        try:
            accepted.append(await router.submit(msgspec.structs.replace(task, parent=parent)))
        except HeadraceError:
            await cancel_all(router, accepted)
            raise
    return accepted
