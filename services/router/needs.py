"""Requests that nobody who was asked for can serve, whatever comes free.

Answers "is waiting in vain, and who could do it?" before anything is stored. Machines that are silent, paused or busy count as
able: tasks wait for them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from schemas.events import Wants
from services.router.fleet import Fleet
from services.router.nearest import resolve_model
from services.router.policy.filters import (
    Pair,
    does_what_is_asked,
    has_capability,
    has_the_context,
    is_the_worker_asked_for,
    lacks_nothing_needed,
    pairs_of,
)
from services.router.policy.request import RouteRequest
from services.router.policy.routes import Routes
from services.router.port import Unsupported

NEEDED = (does_what_is_asked, has_capability, lacks_nothing_needed, has_the_context)
FIELDS = {
    "kind": "model", "capability": "capability", "tools": "tools", "vision": "messages", "image_urls": "messages",
    "context": "messages",
}  # fmt: skip
NAMED = 5


def refuse_unable(request: RouteRequest, fleet: Fleet, routes: Routes) -> None:
    """Raises Unsupported where each pair that the request allows lacks something, naming the models that lack nothing."""
    reasons: dict[str, None] = {}
    for pair in _asked(request, fleet, routes):
        if is_the_worker_asked_for(pair, request) is None:
            reason = _lack(pair, request)
            if reason is None:
                return  # nearly always the first: each request comes through here
            reasons[reason] = None
    if not reasons:
        return
    open_to_all = msgspec.structs.replace(
        request, wants=Wants(context=request.wants.context, capability=request.wants.capability)
    )
    everybody = (pair for model in fleet.models() for pair in pairs_of(model, fleet.holders(model)))
    able = tuple(dict.fromkeys(pair.model for pair in everybody if _lack(pair, open_to_all) is None))
    words = [reason.partition(": ")[2] for reason in reasons]
    more = f" and {len(words) - NAMED} more reasons" if len(words) > NAMED else ""
    who = f"these can: {', '.join(able)}" if able else "no model in the fleet can"
    code = next(iter(reasons)).partition(":")[0]
    raise Unsupported(f"{'; '.join(words[:NAMED])}{more}; {who}", field=FIELDS.get(code, "model"), able=able)


def _asked(request: RouteRequest, fleet: Fleet, routes: Routes) -> Iterable[Pair]:
    route = routes.get(request.wants.route)
    if request.wants.model is not None:
        models = [request.wants.model]
    elif route is not None and route.targets:
        models = [target.model for target in (*route.targets, *route.fallback)]
    else:
        models = list(fleet.models())
    for model in dict.fromkeys(resolve_model(fleet, model) for model in models):
        if model is not None:
            yield from pairs_of(model, fleet.holders(model))


def _lack(pair: Pair, request: RouteRequest) -> str | None:
    return next((reason for filter_ in NEEDED if (reason := filter_(pair, request)) is not None), None)
