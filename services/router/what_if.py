"""The same task decided another way: under another policy, another slider, another route, or with other numbers.

Answers "what would have been chosen if?". Pure: a case holds all that a decision rests on, so any part of it can be exchanged and
the rest stays as it was. Nothing here is ever released.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from schemas.errors import HeadraceError
from schemas.events import Wants
from schemas.statistics import Statistics
from services.router.fleet import Fleet
from services.router.policy.decide import POLICY, Decision, decide
from services.router.policy.plugins import PLUGINS
from services.router.policy.request import RouteRequest
from services.router.policy.routes import Route, Routes
from services.router.policy.routing import Routing

ALIASES = {"least_inflight": "least_in_flight", "legacy": "legacy_mended", "affinity": "session_affinity"}
_SLIDER = re.compile(r"slider=(\d{1,6}(?:\.\d{1,6})?)")


class UnknownPolicy(HeadraceError, ValueError):
    """Neither a policy nor a route; ``--versus`` takes a task or a time as well."""

    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        super().__init__(
            f"versus={name[:64]}: that is no policy, route, task or time known here; policies and routes are "
            f"{', '.join(known)}; or say slider=2, a task's id, 2h, or 2026-01-31T12:00"
        )


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One task and everything that is known; ``routing`` is its own route's, ``in_flight`` are live attempts by worker."""

    request: RouteRequest
    fleet: Fleet
    stats: Statistics
    seed: int
    now_us: int
    slider: float
    routing: Routing | None = None
    in_flight: Mapping[str, int] = {}


def decided(case: Case) -> Decision:
    """Raises UnknownModel, with the nearest names."""
    return decide(
        case.request,
        case.fleet,
        case.stats,
        seed=case.seed,
        now_us=case.now_us,
        slider=case.slider,
        routing=case.routing,
    )


def names(routes: Routes) -> tuple[str, ...]:
    """Every policy and route that a case can be put under."""
    return tuple(dict.fromkeys((POLICY, *sorted(PLUGINS), *routes.names)))


def under(case: Case, name: str, routes: Routes) -> Case | None:
    """The case under ``name``: ``slider=2``, a policy, a route. None where it is none of these."""
    asked = ALIASES.get(name.replace("-", "_"), name.replace("-", "_"))
    if slider := _SLIDER.fullmatch(name):
        request = msgspec.structs.replace(case.request, slider=float(slider[1]))
        return msgspec.structs.replace(case, request=request, slider=float(slider[1]))
    if (route := routes.get(name)) is not None:
        return _on(case, route)
    if asked == POLICY or name in routes.names:  # ``auto`` without an entry is the plain policy over everybody
        return msgspec.structs.replace(case, request=_open(case.request, None), routing=None)
    if asked in PLUGINS:
        return _on(case, Route(name=asked, by="policy", plugins={asked: PLUGINS[asked].weight}))
    return None


def with_numbers(case: Case, stats: Statistics) -> Case:
    """The same machines in the same state, known as well as ``stats`` knew them."""
    return msgspec.structs.replace(case, stats=stats)


def _on(case: Case, route: Route) -> Case:
    last = case.routing.last if case.routing is not None else None
    routing = Routing(route=route, last=last, in_flight=case.in_flight)
    return msgspec.structs.replace(case, request=_open(case.request, route.name), routing=routing)


def _open(request: RouteRequest, route: str | None) -> RouteRequest:
    """A model that the client fixed stays fixed: the other policy has the same choice among machines."""
    wants: Wants = msgspec.structs.replace(request.wants, route=route)
    return msgspec.structs.replace(request, wants=wants)
