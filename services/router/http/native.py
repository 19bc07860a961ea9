"""Headrace's own paths about tasks: submit, look, follow, cancel (docs/http.md)."""

from __future__ import annotations

import re

from fastapi import APIRouter, Request
from starlette.responses import Response

from services.router.http.headers import header_value
from services.router.http.live import Timing
from services.router.http.preview_rows import decided
from services.router.http.problems import UnknownTask
from services.router.http.reading import read_json, typed
from services.router.http.replies import Json
from services.router.http.route_request import RouteRequest, route_task
from services.router.http.task_stream import TaskStream, end_of
from services.router.port import RouterPort, TaskStatus

TASK_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What else comes is no task's id, and must not become a subject."""


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
            "warning": submitted.warning,
        }
        told = {"x-headrace-warning": header_value(submitted.warning)} if submitted.warning else {}
        return Json(reply, 202, {"x-headrace-task": submitted.task, **told})

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

    return routes


async def _known(router: RouterPort, task: str) -> TaskStatus:
    """A name that cannot be a task's id is not asked for: it would become a subject."""
    status = await router.status(task) if TASK_ID.fullmatch(task) else None
    if status is None:
        raise UnknownTask(task)
    return status
