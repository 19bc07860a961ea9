"""What does a request in our own words ask of the router? ``POST /route`` and the preview's query to a NewTask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from schemas.events import Options, Wants
from schemas.work import Body
from services.router.fleet import Fleet
from services.router.http.asking import Constraints, Name, Sampling, limit_of, wanted_model, worker_id
from services.router.http.identity import client_of, message_of, session_of
from services.router.http.reading import BadRequest, check_extra, check_messages
from services.router.port import NewTask

OURS = frozenset({"model", "messages", "prompt", "stream", "stream_options"})
"""Inside ``extra`` these would change what was routed, or how the worker reads the answer."""


class RouteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of ``POST /route``."""

    prompt: str | None = None
    messages: list[Any] | None = None
    model: Name | None = None
    route: Name | None = None
    client: Name | None = None
    session: Name | None = None
    message: Name | None = None
    constraints: Constraints | None = None
    options: Sampling | None = None
    extra: dict[str, Any] | None = None


class PreviewQuery(Constraints, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query of ``GET /route/preview``. ``versus``: what to set it beside."""

    prompt: str
    versus: Name | None = None
    model: Name | None = None
    route: Name | None = None
    client: Name | None = None
    session: Name | None = None


class ExplainQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query of ``GET /explain/{id}``."""

    verify: bool = False
    versus: Name | None = None


def route_task(asked: RouteRequest, headers: Mapping[str, str], fleet: Fleet) -> NewTask:
    """Raises BadRequest naming the field."""
    if (asked.prompt is None) == (asked.messages is None):
        raise BadRequest("send either prompt or messages", "prompt")
    if asked.prompt is not None and not asked.prompt.strip():
        raise BadRequest("prompt is empty; say what is asked", "prompt")
    extra = check_extra(asked.extra or {}, "extra.")
    for key in sorted(OURS & extra.keys()):
        raise BadRequest(f"extra.{key}: {key} is not the backend's to read; it has a place of its own", f"extra.{key}")
    said = asked.constraints or Constraints()
    options = asked.options or Sampling()
    messages = () if asked.messages is None else check_messages(asked.messages)
    return NewTask(
        client=client_of(headers, asked.client),
        session=session_of(headers, named=asked.session),
        message=message_of(headers, asked.message),
        urgency=said.urgency,
        body=Body(prompt=asked.prompt, messages=messages, extra=extra),
        wants=_wants(fleet, said, asked.model, asked.route, "constraints.worker"),
        options=Options(
            max_tokens=limit_of(said.max_tokens, "constraints.max_tokens"),
            temperature=options.temperature,
            top_p=options.top_p,
            seed=options.seed,
            slider=said.slider,
        ),
        domain=said.domain,
        deadline_s=said.deadline_s,
    )


def preview_task(asked: PreviewQuery, headers: Mapping[str, str], fleet: Fleet) -> NewTask:
    if not asked.prompt.strip():
        raise BadRequest("prompt is empty; say what would be asked", "prompt")
    return NewTask(
        client=client_of(headers, asked.client),
        session=session_of(headers, named=asked.session),
        urgency=asked.urgency,
        body=Body(prompt=asked.prompt),
        wants=_wants(fleet, asked, asked.model, asked.route, "worker"),
        options=Options(max_tokens=limit_of(asked.max_tokens, "max_tokens"), slider=asked.slider),
        domain=asked.domain,
        deadline_s=asked.deadline_s,
    )


def _wants(fleet: Fleet, said: Constraints, model: str | None, route: str | None, worker_field: str) -> Wants:
    return Wants(
        model=wanted_model(model),
        route=route,
        worker=worker_id(fleet, said.worker, worker_field),
        capability=said.capability,
        context=said.context,
    )
