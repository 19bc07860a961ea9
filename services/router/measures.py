"""The queue and the permits as numbers for a scraper.

Answers "how many wait, for what, and how full is everything?" from the fold, the plan and the limits. Pure. A client's name is
no label: there may be any number of them, so clients are one sum, and those with a limit of their own.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from services.router.dispatch.permits import Limits, backend_names, named
from services.router.dispatch.planner import Plan
from services.router.dispatch.state import RouterState
from services.router.tally import Tally

KINDS = ("model", "client", "backend")
ALL = "*"


class Permits(msgspec.Struct, frozen=True, kw_only=True):
    """``name`` ``*`` stands for all names of the kind together; ``limit`` None is unlimited."""

    kind: str
    name: str
    held: int
    limit: int | None


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """``waiting`` by class of urgency, ``held`` by the code of the reason; ``exact`` as in ``task.routed``."""

    waiting: dict[str, int]
    held: dict[str, int]
    released: int
    running: int
    permits: tuple[Permits, ...]
    tally: Tally
    exact: bool
    statistics: int


def measures(
    state: RouterState, plan: Plan, limits: Limits, tally: Tally, *, exact: bool = True, statistics: int = 0
) -> Measures:
    waiting: Counter[str] = Counter(interactive=0, batch=0, background=0)
    released = running = 0
    for task in state.tasks.values():
        live = task.live
        if live is not None:
            running += live.started
            released += not live.started
        elif task.terminal is None:
            waiting[task.submitted.urgency] += 1
    held = Counter(reason.partition(":")[0] for reason in plan.holds.values())
    limits, shown = named(limits, state), backend_names(state)
    return Measures(
        waiting=dict(waiting),
        held=dict(held),
        released=released,
        running=running,
        permits=tuple(permit for kind in KINDS for permit in _permits(kind, state.held, limits, shown)),
        tally=tally,
        exact=exact,
        statistics=statistics,
    )


def _permits(kind: str, held: dict[str, int], limits: Limits, shown: dict[str, str]) -> list[Permits]:
    limit = limits.kind(f"{kind}:")
    by_name = {permit.partition(":")[2]: n for permit, n in held.items() if permit.startswith(f"{kind}:")}
    every = set(limit.names) if kind == "client" else set(limit.names) | set(by_name)
    total = Permits(kind=kind, name=ALL, held=sum(by_name.values()), limit=limit.total)
    return [
        total,
        *(
            Permits(
                kind=kind,
                name=shown.get(name, name) if kind == "backend" else name,
                held=by_name.get(name, 0),
                limit=limit.of(name),
            )
            for name in sorted(every)
        ),
    ]
