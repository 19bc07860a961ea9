"""Have a suite run, see how far it is, and what is measured unasked (docs/http.md): the router passes demands and words on."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from schemas.demands import Demand
from schemas.errors import UnknownModel
from services.router.http.asking import Name, worker_id
from services.router.http.gate import caller_of, need_admin
from services.router.http.reading import parse_object, read_body, typed
from services.router.http.replies import Json
from services.router.nearest import nearest
from services.router.port import RouterPort

Prompts = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class BenchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of ``POST /bench``; everything may be left out, the body too."""

    model: Name | None = None
    worker: Name | None = None
    domain: Name | None = None
    limit: Prompts | None = None


def bench_routes(router: RouterPort) -> APIRouter:
    routes = APIRouter()

    @routes.post("/bench")
    async def bench(request: Request) -> Response:
        _need_admin(request)
        body = await read_body(request)
        asked = typed(parse_object(body) if body.strip() else {}, BenchRequest)
        fleet = router.fleet()
        if asked.model is not None and asked.model not in fleet.models():
            raise UnknownModel(asked.model, nearest(asked.model, fleet.models()))
        worker = worker_id(fleet, asked.worker, "worker")
        demand = Demand(model=asked.model, worker=worker, domain=asked.domain, limit=asked.limit)
        return Json(await router.bench(demand), 202)

    @routes.get("/bench")
    async def owed() -> Response:
        measuring = await router.bench_owed()
        names = router.fleet().names()
        rows = [
            {**msgspec.to_builtins(debt), "worker_name": names.get(debt.worker, debt.worker)} for debt in measuring.owed
        ]
        return Json({**msgspec.to_builtins(measuring), "owed": rows})

    @routes.get("/bench/{run}")
    async def shown(run: str) -> Response:
        return Json(await router.bench_run(run))

    @routes.delete("/bench/{run}")
    async def cancel(run: str, request: Request) -> Response:
        _need_admin(request)
        return Json(await router.bench_cancel(run))

    return routes


def _need_admin(request: Request) -> None:
    """A run keeps every machine busy and all that is measured unasked from it. Without keys nobody is told from anybody."""
    if caller_of(request).name is not None:
        need_admin(request, "have the suites run, or end a run")
