"""Anthropic's Messages: ``/v1/messages`` and its ``count_tokens``, for agents that know only it (docs/http/anthropic.md)."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from schemas.language import estimate_tokens
from schemas.sizes import sizes_of
from schemas.work import Body
from services.router.http.anthropic_reply import MessageEvents, message_of
from services.router.http.anthropic_request import PATH, Counted, messages_of, messages_task, tools_of
from services.router.http.live import Timing
from services.router.http.problems import anthropic_form
from services.router.http.reading import read_json, typed
from services.router.http.replies import Json
from services.router.http.speaking import Whole
from services.router.http.streaming import Streamed
from services.router.port import RouterPort


def anthropic_routes(router: RouterPort, timing: Timing) -> APIRouter:
    routes = APIRouter()

    @routes.post(PATH)
    async def messages(request: Request) -> Response:
        asked, task = messages_task(await read_json(request), request.headers, router.fleet())
        estimate = _tokens(task.body)
        submitted = await router.submit(task)
        if asked.stream:
            events = MessageEvents(submitted.task, estimate)
            return Streamed(router, [submitted], timing, [events], form=anthropic_form)
        return Whole(
            router,
            [submitted],
            timing,
            lambda answers, _created, told: message_of(answers[0], told, estimate),
            form=anthropic_form,
        )

    @routes.post(PATH + "/count_tokens")
    async def count(request: Request) -> Response:
        """An estimate: whose tokeniser counts is known only when somebody answers."""
        asked = typed(await read_json(request), Counted)
        return Json({"input_tokens": _tokens(Body(messages=messages_of(asked), extra=tools_of(asked)))})

    return routes


def _tokens(body: Body) -> int:
    tools = body.extra.get("tools")
    of_tools = estimate_tokens(msgspec.json.encode(tools).decode()) if tools else 0
    return sizes_of(body, 0).prompt_tokens + of_tools
