"""From a client's request to the fact that is stored: domain, language, sizes, canonical names.

Answers "what exactly was asked, without its text?". Pure; the text goes to its own subject.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from schemas.errors import UnknownModel, UnknownRoute
from schemas.events import Domain, Options, PayloadRef, Sizes, TaskSubmitted, Wants
from schemas.language import language_of
from schemas.prediction import written_most
from schemas.sizes import sizes_of, text_of
from schemas.subjects import body_subject
from services.router.domains import Rule, classify
from services.router.fleet import Fleet
from services.router.nearest import known_models, nearest, resolve_model, resolve_worker
from services.router.policy.needs import needs_of
from services.router.policy.nobody import refuse_nowhere
from services.router.policy.request import RouteRequest
from services.router.policy.routes import AUTO, Routes
from services.router.port import NewTask, TooLarge

NO_ROUTES = Routes()
NO_SLIDERS: Mapping[str, float] = {}

HEADERS_MAX = 1024
"""A message's id and subject count towards the server's limit as well."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A request, read: everything but its text. ``options`` with the slider of its route, where it has none of its own."""

    domain: Domain
    language: str | None
    sizes: Sizes
    wants: Wants
    options: Options = Options()


def refuse_too_large(body_bytes: int, max_payload: int) -> None:
    """Before anything is stored: the server would refuse it each time it were sent."""
    if body_bytes + HEADERS_MAX > max_payload:
        raise TooLarge(
            f"the request has {body_bytes} bytes, and NATS messages here end at max_payload = {max_payload}: send fewer or "
            "smaller images, split the text, or raise max_payload in the nats-server's configuration"
        )


def read(
    new: NewTask,
    body_bytes: int,
    rules: Sequence[Rule],
    fleet: Fleet,
    routes: Routes = NO_ROUTES,
    sliders: Mapping[str, float] = NO_SLIDERS,
) -> Asked:
    """Raises UnknownModel or UnknownRoute, with the nearest names, where nobody holds the model or no route is called so, and
    UnknownTarget where nobody is meant by any of the route's targets.

    ``sliders`` are by client, for a request whose own and whose route's is not set.
    """
    text = text_of(new.body)
    domain = classify(text, rules) if new.domain is None else Domain(label=new.domain, method="client")
    sizes = sizes_of(new.body, body_bytes)
    wants = _wants(new.wants, fleet, routes)
    route = routes.get(wants.route)
    if route is not None:
        refuse_nowhere(route, fleet)
    given = (new.options.slider, route.slider if route is not None else None, sliders.get(new.client))
    slider = next((value for value in given if value is not None), None)
    options = msgspec.structs.replace(new.options, slider=slider)
    return Asked(domain=domain, language=language_of(text), sizes=sizes, wants=wants, options=options)


def request_from(new: NewTask, asked: Asked) -> RouteRequest:
    return RouteRequest(
        domain=asked.domain.label,
        prompt_tokens=asked.sizes.prompt_tokens,
        max_tokens=written_most(new.kind, asked.options.max_tokens),
        wants=asked.wants,
        kind=new.kind,
        urgency=new.urgency,
        slider=asked.options.slider,
        client=new.client,
        session=new.session,
        verdict=new.verdict,
        needs=needs_of(asked.sizes),
    )


def submitted(new: NewTask, asked: Asked, task: str, *, id: str, at: float, by: str) -> TaskSubmitted:
    return TaskSubmitted(
        id=id,
        at=at,
        by=by,
        task=task,
        client=new.client,
        session=new.session,
        kind=new.kind,
        urgency=new.urgency,
        domain=asked.domain,
        language=asked.language,
        sizes=asked.sizes,
        wants=asked.wants,
        options=asked.options,
        deadline_s=new.deadline_s,
        parent=new.parent,
        verdict=new.verdict,
        bench=new.bench,
        repeats=new.repeats,
        message=new.message,
        payload=PayloadRef(subject=body_subject(new.client, task), bytes=asked.sizes.body_bytes),
    )


def route_of(wants: Wants, routes: Routes) -> str | None:
    """The route asked for: by name, as a virtual model, or by leaving everything open where ``auto`` is one."""
    asked = AUTO if wants.model is None else wants.model
    return asked if wants.route is None and asked in routes.routes else wants.route


def _wants(wants: Wants, fleet: Fleet, routes: Routes) -> Wants:
    """Canonical names: an alias becomes its model, a virtual model its route, a worker's shown name its id."""
    model, worker, route = wants.model, wants.worker, route_of(wants, routes)
    if route is not None and wants.route is None:
        model = None
    if route is not None and not routes.knows(route):
        raise UnknownRoute(route, nearest(route, routes.names))
    if model is not None:
        found = resolve_model(fleet, model)
        if found is None:
            near = nearest(model, (*known_models(fleet), *routes.routes))
            raise UnknownModel(model, near, open_to_auto=True)
        model = found
    if worker is not None:
        worker = resolve_worker(fleet, worker) or worker
    return msgspec.structs.replace(wants, model=model, worker=worker, route=route)
