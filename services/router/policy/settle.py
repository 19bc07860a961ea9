"""Which of a route's targets may take a task now: the drawn one, all of them, or the fallback.

Answers "where may this go?" in order: the targets that somebody can answer for, else the first such fallback, else the targets
again, to wait for them. Who of the allowed pairs gets it is the planner's and the plugins' question.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from services.router.fleet import Fleet
from services.router.nearest import resolve_model
from services.router.policy.drawing import next_target, stand_in
from services.router.policy.filters import HARD, SOFT, pairs_of
from services.router.policy.request import RouteRequest
from services.router.policy.routes import Route, Target

FILTERS = (*HARD, *SOFT)


class Settled(msgspec.Struct, frozen=True):
    """``drawn`` counts in the log; ``among`` are those it was drawn from; ``reason`` is set where it is not as usual."""

    allowed: tuple[Target, ...]
    drawn: Target | None = None
    among: tuple[Target, ...] = ()
    reason: str | None = None


class Pool(NamedTuple):
    """The targets that a task may go to now, why just these where it is not as usual, and whether they are the fallback."""

    targets: tuple[Target, ...]
    reason: str | None
    is_fallback: bool


Counts = Callable[[Sequence[Target]], dict[str, int]]
"""How often each of these targets was drawn so far, of draws among just these."""


def settle(route: Route, request: RouteRequest, fleet: Fleet, counts: Counts) -> Settled:
    """On arrival."""
    pool, reason, is_fallback = pool_of(route, request, fleet)
    if is_fallback or route.by == "policy":
        return Settled(pool, reason=reason)
    drawn = next_target(pool, counts(pool))
    return Settled((drawn,), drawn, pool, reason)


def settle_again(route: Route, pool: Pool, drawn: str | None, seed: int) -> Settled:
    """While it waits: what was drawn stays drawn as long as somebody can answer for it."""
    if pool.is_fallback or route.by == "policy":
        return Settled(pool.targets, reason=pool.reason)
    kept = next((target for target in pool.targets if target.name == drawn), None)
    if kept is not None:
        return Settled((kept,))
    other = stand_in(pool.targets, seed)
    return Settled((other,), reason=f"nobody can answer for {drawn} any more")


def pool_of(route: Route, request: RouteRequest, fleet: Fleet) -> Pool:
    """The same for all tasks that ask for the same: it looks at every machine for every target."""
    if not route.targets:
        return Pool((), None, False)
    able = tuple(target for target in route.targets if can_answer(target, request, fleet))
    if able:
        missing = [target.name for target in route.targets if target not in able]
        return Pool(able, f"nobody can answer for {', '.join(missing)}" if missing else None, False)
    for target in route.fallback:
        if can_answer(target, request, fleet):
            return Pool(
                (target,), f"nobody can answer for a target of {route.name}; {target.name} is its fallback", True
            )
    return Pool(route.targets, f"nobody can answer for a target of {route.name} now", False)


def can_answer(target: Target, request: RouteRequest, fleet: Fleet) -> bool:
    """Somebody heard lately, neither leaving nor taken out, who passes every filter."""
    model = resolve_model(fleet, target.model)
    if model is None:
        return False
    alone = msgspec.structs.replace(request, targets=(target,))
    return any(
        all(filter_(pair, alone) is None for filter_ in FILTERS) for pair in pairs_of(model, fleet.holders(model))
    )
