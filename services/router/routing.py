"""What the desk knows of routes: the file's, with the counts, sessions and live attempts of the fold.

Answers "which routing goes for this task?" on arrival, "where may it go now?" while it waits, and "which offer does its route
want?" at its release. Pure: the file is read elsewhere.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from services.router.dispatch.draws import drawn, session_key
from services.router.dispatch.live import Live
from services.router.dispatch.state import RouterState, Task
from services.router.policy.drawing import shares
from services.router.policy.plugin import Contender, LastServed
from services.router.policy.request import RouteRequest, request_of
from services.router.policy.routes import Route, Routes, Target
from services.router.policy.routing import Routing, prefer
from services.router.policy.settle import Pool, settle_again


def seed_of(task: str) -> int:
    """A task's own, so that its decision can be repeated."""
    return zlib.crc32(task.encode())


def routing_of(routes: Routes, request: RouteRequest, state: RouterState, live: Live) -> Routing | None:
    """On arrival; None without a route."""
    route = routes.get(request.wants.route)
    if route is None:
        return None

    def counts(targets: Sequence[Target]) -> dict[str, int]:
        unfolded = [draft for task, draft in live.drafts.items() if not _folded(state, task)]
        return drawn(state.draws, route.name, shares(targets), unfolded)

    return Routing(route=route, counts=counts, last=last_of(request, state), in_flight=in_flight(state))


def narrowed(routes: Routes, task: Task, live: Live, pool: Callable[[Route, RouteRequest], Pool]) -> RouteRequest:
    """The request of a waiting task, with the targets that its route allows now. ``pool`` is asked for routes only."""
    request = request_of(task.submitted)
    route = routes.get(request.wants.route)
    if route is None:
        return request
    draft = live.drafts.get(task.submitted.task)
    target = task.target if task.routed_seq is not None or draft is None else draft.target
    settled = settle_again(route, pool(route, request), target, seed_of(task.submitted.task))
    return msgspec.structs.replace(request, targets=settled.allowed)


def preferred(routes: Routes, task: Task, state: RouterState, offers: Sequence[Contender]) -> int | None:
    """The index of the offer that the task's route wants; None leaves it to the least cost."""
    route: Route | None = routes.get(task.submitted.wants.route)
    if route is None:
        return None
    request = request_of(task.submitted)
    return prefer(request, route, last_of(request, state), offers, seed_of(task.submitted.task))


def last_of(request: RouteRequest, state: RouterState) -> LastServed | None:
    if request.session is None:
        return None
    served = state.sessions.get(session_key(request.client, request.session))
    return None if served is None else LastServed(model=served.model, worker=served.worker, tokens=served.tokens)


def in_flight(state: RouterState) -> Counter[str]:
    """Live attempts by the worker that runs them, or is meant to."""
    attempts = [attempt for task in state.tasks.values() if (attempt := task.live) is not None]
    return Counter(worker for attempt in attempts if (worker := attempt.worker or attempt.expected) is not None)


def _folded(state: RouterState, task: str) -> bool:
    """Whether the log's own copy of the decision was counted."""
    known = state.task(task)
    return task in state.early or (known is not None and known.routed_seq is not None)
