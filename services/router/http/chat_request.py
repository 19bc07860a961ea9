"""What does an OpenAI chat request ask of the router? A decoded body to a NewTask, everything else kept for the backend."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from schemas.events import Options, Wants
from schemas.work import Body
from services.router.fleet import Fleet
from services.router.http.asking import (
    Count,
    Name,
    RoutedConstraints,
    Seed,
    Share,
    Temperature,
    given,
    wanted_model,
    worker_id,
)
from services.router.http.identity import client_of, message_of, session_of
from services.router.http.reading import BadRequest, check_extra, check_messages, typed
from services.router.port import NewTask


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    include_usage: bool | None = None


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that the router reads. OpenAI's own clients send null for what was not set."""

    messages: list[Any]
    model: Name | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    seed: Seed | None = None
    n: int | None = None
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
    if request.n not in (None, 1):
        raise BadRequest(f"n is {request.n}; one answer for each request, send it again for another", "n")
    said = request.headrace or RoutedConstraints()
    task = NewTask(
        client=client_of(headers),
        session=session_of(headers, PATH, cache_key=request.prompt_cache_key),
        message=message_of(headers),
        urgency=said.urgency,
        body=Body(messages=check_messages(request.messages), extra=check_extra(given(values, TAKEN))),
        wants=Wants(
            model=wanted_model(request.model),
            route=said.route,
            worker=worker_id(fleet, said.worker, "headrace.worker"),
            capability=said.capability,
            context=said.context,
        ),
        options=Options(
            max_tokens=request.max_completion_tokens or request.max_tokens or said.max_tokens,
            temperature=request.temperature,
            top_p=request.top_p,
            seed=request.seed,
            slider=said.slider,
        ),
        domain=said.domain,
        deadline_s=said.deadline_s,
    )
    return request, task
