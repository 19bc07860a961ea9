"""OpenAI's Responses: ``/v1/responses``, for agents that speak nothing else (docs/http/openai.md)."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from schemas.work import Answer
from services.router.http.chat_reply import whole_calls
from services.router.http.identity import client_of
from services.router.http.live import Timing
from services.router.http.native import TASK_ID
from services.router.http.problems import UnknownTask, problem_of_end
from services.router.http.reading import BadRequest, read_json
from services.router.http.replies import Json
from services.router.http.responses_reply import ResponseEvents, Shape
from services.router.http.responses_request import PATH, ResponsesRequest, read_responses, responses_task
from services.router.http.speaking import Whole, now_s
from services.router.http.streaming import Streamed
from services.router.policy.routes import AUTO
from services.router.port import RouterPort

PREFIX = "resp_"
REFERENCE = re.compile(
    r"(?:msg|rs)_(?P<text>[A-Za-z0-9-]{1,64})(?P<further>_\d+)?|(?:fc|ctc)_(?P<call>[A-Za-z0-9-]{1,64})_\d+"
)
"""Our own names of a response's items (``Shape``), which hold the task's."""


def responses_routes(router: RouterPort, timing: Timing) -> APIRouter:
    routes = APIRouter()

    @routes.post(PATH)
    async def respond(request: Request) -> Response:
        values = await read_json(request)
        asked = read_responses(values)
        before: list[dict[str, Any]] = []
        if asked.previous_response_id is not None:
            before = await _before(router, asked.previous_response_id, client_of(request.headers))
        asked = msgspec.structs.replace(asked, input=await _whole(router, asked.input, client_of(request.headers)))
        task = responses_task(asked, values, before, request.headers, router.fleet())
        submitted = await router.submit(task)
        shape = Shape(asked, submitted.task, now_s(), asked.model or AUTO)
        if asked.stream:
            return Streamed(router, [submitted], timing, [ResponseEvents(shape)])
        return Whole(router, [submitted], timing, lambda answers, _created, told: shape.of_answer(answers[0], told))

    @routes.get(PATH + "/{response}")
    async def look(response: str, request: Request) -> Response:
        task = _task_of(response)
        found = await router.asked(task) if task else None
        status = await router.status(task) if task else None
        if found is None or status is None or found[0].client != client_of(request.headers):
            raise UnknownTask(response, _unknown(response))
        shape = Shape(ResponsesRequest(), task, int(found[0].at), status.model or AUTO)
        answer = await router.answer(task) if status.state == "completed" else None
        if answer is not None:
            return Json(shape.of_answer(answer, None))
        problem = problem_of_end(status) if status.state in ("failed", "cancelled", "dead") else None
        if problem is None:
            return Json(shape.response("in_progress" if status.state == "running" else "queued"))
        state = "cancelled" if status.state == "cancelled" else "failed"
        return Json(shape.response(state, error={"code": problem.code, "message": problem.message}))

    return routes


async def _whole(router: RouterPort, given: Any, client: str) -> Any:
    """The input with the items of former responses that are only named in it, as Vercel's AI SDK does from the second turn on."""
    if not isinstance(given, list):
        return given
    known: dict[str, dict[str, dict[str, Any]]] = {}
    items: list[Any] = []
    for at, item in enumerate(given):
        if not isinstance(item, dict) or item.get("type") != "item_reference":
            items.append(item)
            continue
        name = str(item.get("id"))
        found = REFERENCE.fullmatch(name)
        task = (found["text"] or found["call"]) if found is not None else ""
        if task not in known:
            asked = await router.asked(task) if task else None
            answer = await router.answer(task) if asked is not None and asked[0].client == client else None
            shape = Shape(ResponsesRequest(), task, 0, AUTO)
            known[task] = {each["id"]: each for each in shape.items(answer)} if answer is not None else {}
        if known[task] and found is not None and found["further"]:
            continue  # the first of its kind has all that was kept
        kept = known[task].get(name.replace("ctc_", "fc_", 1))
        if kept is None:
            raise BadRequest(f"input[{at}]: {_unknown(name)}; send the whole input", f"input[{at}]")
        items.append(kept)
    return items


async def _before(router: RouterPort, response: str, client: str) -> list[dict[str, Any]]:
    """The conversation up to a former response, the response with it. Only whoever asked it goes on with it."""
    task = _task_of(response)
    found = await router.asked(task) if task else None
    answer = await router.answer(task) if found is not None else None
    if found is None or answer is None or found[0].client != client:
        raise BadRequest(f"previous_response_id: {_unknown(response)}; send the whole input", "previous_response_id")
    return [*found[1].messages, _as_message(answer)]


def _as_message(answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking
    if answer.tool_calls:
        message["tool_calls"] = whole_calls(answer.tool_calls)
    elif not answer.text:
        message["content"] = ""
    return message


def _task_of(response: str) -> str:
    task = response.removeprefix(PREFIX)
    return task if response.startswith(PREFIX) and TASK_ID.fullmatch(task) else ""


def _unknown(response: str) -> str:
    return f"no response {response[:64]!r} with an answer is known; answers are kept for [privacy] keep_s"
