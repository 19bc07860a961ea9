"""Headrace's own paths about tasks: submit, look, follow, cancel, preview, explain (docs/http.md)."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from services.router.decision_words import decision_words
from services.router.explain import explain_words, story_words
from services.router.http.comparison_rows import verified_of, versus_of
from services.router.http.live import Timing
from services.router.http.preview_rows import decided, preview_of
from services.router.http.problems import UnknownTask
from services.router.http.reading import read_json, typed
from services.router.http.replies import Json
from services.router.http.route_request import ExplainQuery, PreviewQuery, RouteRequest, preview_task, route_task
from services.router.http.task_stream import TaskStream, end_of
from services.router.port import RouterPort, TaskStatus

_TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def native_routes(router: RouterPort, timing: Timing) -> APIRouter:
    routes = APIRouter()

    @routes.post("/route")
    async def route(request: Request) -> Response:
        asked = typed(await read_json(request), RouteRequest)
        submitted = await router.submit(route_task(asked, request.headers, router.fleet()))
        decision = submitted.decision
        reply = {
            "task": submitted.task,
            "domain": submitted.domain,
            "language": submitted.language,
            "decision": decided(decision, router.fleet()) if decision is not None else None,
        }
        return Json(reply, 202, {"x-headrace-task": submitted.task})

    @routes.get("/route/preview")
    async def preview(request: Request) -> Response:
        asked = typed(dict(request.query_params), PreviewQuery, strict=False)
        task = preview_task(asked, request.headers, router.fleet())
        seen = router.preview(task)
        assert seen.decision is not None
        shown = preview_of(seen, seen.decision, router.fleet(), decision_words(seen.decision, _names(router)))
        if asked.versus is None:
            return Json(shown)
        beside = await router.versus(task, asked.versus)
        return Json(msgspec.structs.asdict(shown) | {"versus": versus_of(beside, router.fleet())})

    @routes.get("/task/{task}")
    async def look(task: str) -> Response:
        status = await _known(router, task)
        answer = await router.answer(task) if status.state == "completed" else None
        return Json(end_of(router, status, answer))

    @routes.get("/task/{task}/stream")
    async def stream(task: str) -> Response:
        await _known(router, task)
        return TaskStream(router, task, timing)

    @routes.delete("/task/{task}")
    async def cancel(task: str) -> Response:
        status = await _known(router, task)
        cancelled = await router.cancel(task, "cancelled over HTTP")
        return Json({"task": task, "cancelled": cancelled, "state": status.state})

    @routes.get("/explain/{task}")
    async def explain(task: str, request: Request) -> Response:
        asked = typed(dict(request.query_params), ExplainQuery, strict=False)
        found = await router.explain(task) if _TASK_ID.fullmatch(task) else None
        if found is None:
            raise UnknownTask(task)
        status, decision, events = found
        names = _names(router)
        told: dict[str, Any] = {
            "status": status,
            "decision": decision,
            "events": events,
            "words": explain_words(status, decision, events, names),
            "story": story_words(status, decision, events, names),
        }
        if asked.verify:
            told["verification"] = [verified_of(each) for each in await router.verify(task) or ()]
        if asked.versus is not None:
            told["versus"] = versus_of(await router.versus(task, asked.versus), router.fleet())
        return Json(told)

    return routes


def _names(router: RouterPort) -> dict[str, str]:
    return {worker.id: worker.name for worker in router.fleet().workers.values()}


async def _known(router: RouterPort, task: str) -> TaskStatus:
    """A name that cannot be a task's id is not asked for: it would become a subject."""
    status = await router.status(task) if _TASK_ID.fullmatch(task) else None
    if status is None:
        raise UnknownTask(task)
    return status
