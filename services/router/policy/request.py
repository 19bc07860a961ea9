"""What a decision needs to know about a task: sizes and wishes, never its text."""

from __future__ import annotations

import msgspec

from schemas.events import Kind, TaskSubmitted, Urgency, Verdict, Wants
from schemas.prediction import written_most
from services.router.policy.needs import needs_of
from services.router.policy.routes import Target


class RouteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One task to route. ``slider`` None takes the route's, else the router's. ``prompt_tokens`` is an estimate. ``targets`` are
    those that its route allows now; empty allows every model. ``needs`` are ``needs.needs_of`` its sizes."""

    domain: str = "unknown"
    prompt_tokens: int
    max_tokens: int | None = None
    wants: Wants = Wants()
    kind: Kind = "chat"
    urgency: Urgency = "interactive"
    slider: float | None = None
    client: str = ""
    session: str | None = None
    verdict: Verdict | None = None
    targets: tuple[Target, ...] = ()
    needs: tuple[str, ...] = ()


def request_of(submitted: TaskSubmitted) -> RouteRequest:
    """The request as the log has it, so that a restarted router decides about the same thing."""
    return RouteRequest(
        domain=submitted.domain.label,
        prompt_tokens=submitted.sizes.prompt_tokens,
        max_tokens=written_most(submitted.kind, submitted.options.max_tokens),
        wants=submitted.wants,
        kind=submitted.kind,
        urgency=submitted.urgency,
        slider=submitted.options.slider,
        client=submitted.client,
        session=submitted.session,
        verdict=submitted.verdict,
        needs=needs_of(submitted.sizes),
    )
