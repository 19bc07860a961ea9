"""What does an OpenAI chat request ask of the router? A decoded body to a NewTask, everything else kept for the backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from schemas.events import Options, Urgency, Wants
from schemas.work import Body
from services.router.fleet import Fleet
from services.router.http.asking import (
    Limit,
    Name,
    RoutedConstraints,
    Seed,
    Share,
    Temperature,
    given,
    limit_of,
    wanted_model,
    worker_id,
)
from services.router.http.identity import client_of, message_of, session_of, task_kind_of
from services.router.http.reading import check_extra, check_messages, typed
from services.router.http.submitting import SIDE_BY_SIDE_MAX
from services.router.http.tool_choice import narrowed
from services.router.port import NewTask

Choices = Annotated[int, msgspec.Meta(ge=1, le=SIDE_BY_SIDE_MAX)]


class Asker(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, from the headers. A chat's side task (a title) is in the background class, without the chat's session."""

    client: str
    session: str | None
    message: str | None
    urgency: Urgency


def asker_of(headers: Mapping[str, str], path: str, said: RoutedConstraints | None, cache_key: str | None) -> Asker:
    urgency: Urgency = said.urgency if said is not None else "interactive"
    return Asker(
        client=client_of(headers),
        session=session_of(headers, path, cache_key=cache_key),
        message=message_of(headers),
        urgency="background" if task_kind_of(headers) is not None else urgency,
    )


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    include_usage: bool | None = None


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that the router reads. OpenAI's own clients send null for what was not set."""

    messages: list[Any]
    model: Name | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Limit | None = None
    max_completion_tokens: Limit | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    seed: Seed | None = None
    n: Choices | None = None
    prompt_cache_key: str | None = None
    headrace: RoutedConstraints | None = None

    @property
    def wants_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)


PATH = "/v1/chat/completions"
TAKEN = frozenset(ChatRequest.__struct_fields__)


def chat_task(values: dict[str, Any], headers: Mapping[str, str], fleet: Fleet) -> tuple[ChatRequest, NewTask]:
    """Raises BadRequest naming the field."""
    request = typed(values, ChatRequest)
    asker = asker_of(headers, PATH, request.headrace, request.prompt_cache_key)
    options = Options(
        max_tokens=_limit(request),
        temperature=request.temperature,
        top_p=request.top_p,
        seed=request.seed,
    )
    body = Body(messages=check_messages(request.messages), extra=narrowed(given(values, TAKEN)))
    return request, task_of(body, options, request.model, request.headrace, asker, fleet)


def _limit(request: ChatRequest) -> int | None:
    """The newer field stands over the older, also where it says that there is none."""
    if request.max_completion_tokens is not None:
        return limit_of(request.max_completion_tokens, "max_completion_tokens")
    return limit_of(request.max_tokens, "max_tokens")


def task_of(
    body: Body, options: Options, model: str | None, said: RoutedConstraints | None, asker: Asker, fleet: Fleet
) -> NewTask:
    """A task of a surface that is not ours: what it says in its own fields, and in the object ``headrace``."""
    check_extra(body.extra)
    said = said or RoutedConstraints()
    return NewTask(
        client=asker.client,
        session=asker.session,
        message=asker.message,
        urgency=asker.urgency,
        body=body,
        wants=Wants(
            model=wanted_model(model),
            route=said.route,
            worker=worker_id(fleet, said.worker, "headrace.worker"),
            capability=said.capability,
            context=said.context,
        ),
        options=msgspec.structs.replace(
            options,
            max_tokens=options.max_tokens or limit_of(said.max_tokens, "headrace.max_tokens"),
            slider=said.slider,
        ),
        domain=said.domain,
        deadline_s=said.deadline_s,
    )
