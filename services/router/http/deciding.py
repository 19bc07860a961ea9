"""Headrace's own paths about decisions: preview and explain, each beside another one where asked for (docs/http.md)."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from services.router.decision_words import decision_words
from services.router.explain import explain_words, story_words
from services.router.http.comparison_rows import verified_of, versus_of
from services.router.http.native import TASK_ID
from services.router.http.preview_rows import preview_of
from services.router.http.problems import UnknownTask
from services.router.http.reading import typed
from services.router.http.replies import Json
from services.router.http.route_request import ExplainQuery, PreviewQuery, preview_task
from services.router.port import RouterPort


def deciding_routes(router: RouterPort) -> APIRouter:
    routes = APIRouter()

    @routes.get("/route/preview")
    async def preview(request: Request) -> Response:
        asked = typed(dict(request.query_params), PreviewQuery, strict=False)
        task = preview_task(asked, request.headers, router.fleet())
        seen = router.preview(task)
        assert seen.decision is not None
        shown = preview_of(seen, seen.decision, router.fleet(), decision_words(seen.decision, router.fleet().names()))
        if asked.versus is None:
            return Json(shown)
        beside = await router.versus(task, asked.versus)
        return Json(msgspec.structs.asdict(shown) | {"versus": versus_of(beside, router.fleet())})

    @routes.get("/explain/{task}")
    async def explain(task: str, request: Request) -> Response:
        asked = typed(dict(request.query_params), ExplainQuery, strict=False)
        found = await router.explain(task) if TASK_ID.fullmatch(task) else None
        if found is None:
            raise UnknownTask(task)
        status, decision, events = found
        names = router.fleet().names()
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
