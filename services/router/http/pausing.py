"""How is a machine taken out and back in (docs/http.md)? What runs there ends; what waits, waits for others or for its return."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from services.router.http.asking import worker_id
from services.router.http.fleet_rows import worker_row
from services.router.http.reading import parse_object, read_body, typed
from services.router.http.replies import Json
from services.router.nearest import nearest, resolve_worker
from services.router.port import RouterPort, UnknownWorker

PauseSeconds = Annotated[float, msgspec.Meta(gt=0, le=86_400.0 * 366)]
Reason = Annotated[str, msgspec.Meta(max_length=500)]


class Resume(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reason: Reason = ""


class Pause(Resume, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``for_s`` left out: until somebody resumes it."""

    for_s: PauseSeconds | None = None


def pausing_routes(router: RouterPort) -> APIRouter:
    routes = APIRouter()

    @routes.post("/workers/{worker}/pause")
    async def pause(worker: str, request: Request) -> Response:
        asked = typed(await _object(request), Pause)
        known = _known(router, worker)
        await router.pause(known, asked.for_s, asked.reason)
        return _row(router, known)

    @routes.post("/workers/{worker}/resume")
    async def resume(worker: str, request: Request) -> Response:
        asked = typed(await _object(request), Resume)
        known = _known(router, worker)
        await router.resume(known, asked.reason)
        return _row(router, known)

    return routes


async def _object(request: Request) -> dict[str, object]:
    """Everything may be left out, the body too."""
    body = await read_body(request)
    return parse_object(body) if body.strip() else {}


def _known(router: RouterPort, name: str) -> str:
    """The id for an id or a name. Raises UnknownWorker, or BadRequest where several are called so."""
    fleet = router.fleet()
    found = resolve_worker(fleet, name)
    if found is None and name.casefold() in {w.name.casefold() for w in fleet.workers.values()}:
        found = worker_id(fleet, name, "worker")
    if found is None:
        raise UnknownWorker(name, nearest(name, (w.name for w in fleet.workers.values())))
    return found


def _row(router: RouterPort, worker: str) -> Response:
    """It may have left while its pause was stored, which holds all the same."""
    fleet = router.fleet()
    view = fleet.workers.get(worker)
    if view is None:
        raise UnknownWorker(worker, nearest(worker, (w.name for w in fleet.workers.values())))
    return Json({"worker": worker_row(view)})
