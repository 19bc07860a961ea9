"""Which models can be asked for? ``/v1/models`` and ``/v1/models/{id}``, in OpenAI's form, and in Anthropic's for its clients.

From memory: Open WebUI asks on every page load.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from schemas.errors import UnknownModel
from services.router.fleet import Fleet
from services.router.http.fleet_rows import ModelRow, model_rows
from services.router.http.replies import Json
from services.router.http.speaking import now_s
from services.router.nearest import nearest, resolve_model
from services.router.port import RouterPort

OURS = "headrace"


def model_routes(router: RouterPort) -> APIRouter:
    routes = APIRouter()
    started_at = now_s()

    @routes.get("/v1/models")
    async def models(request: Request) -> Response:
        rows = _rows(router, started_at)
        if "anthropic-version" not in request.headers:
            return Json({"object": "list", "data": rows})
        shown = [_anthropic(row) for row in rows]
        ends = (
            {"first_id": shown[0]["id"], "last_id": shown[-1]["id"]} if shown else {"first_id": None, "last_id": None}
        )
        return Json({"data": shown, "has_more": False, **ends})

    @routes.get("/v1/models/{model:path}")
    async def one(model: str, request: Request) -> Response:
        if not model:
            return await models(request)  # a slash at its end
        rows = {row["id"]: row for row in _rows(router, started_at)}
        name = model if model in rows else resolve_model(router.fleet(), model)
        if name is None or name not in rows:
            raise UnknownModel(model, nearest(model, tuple(rows)))
        return Json(_anthropic(rows[name]) if "anthropic-version" in request.headers else rows[name])

    return routes


def _rows(router: RouterPort, created: int) -> list[dict[str, Any]]:
    """Routes first: ``auto`` is what most people want. A route that has a model's name hides it, as it does when asked for."""
    fleet = router.fleet()
    held = {row.name: row for row in model_rows(fleet)}
    rows: dict[str, dict[str, Any]] = {}
    for name in (*router.routes().routes.names, *fleet.models()):
        if name in rows:
            continue
        row = {"id": name, "object": "model", "created": created}
        is_route = name in router.routes().routes.names
        rows[name] = row | (_route() if is_route else _model(held[name], fleet))
    return list(rows.values())


def _route() -> dict[str, Any]:
    return {"owned_by": OURS, "kind": "route", "context": None, "capabilities": None, "held_by": None}


def _model(row: ModelRow, fleet: Fleet) -> dict[str, Any]:
    """``context`` is the largest that a machine gives; each machine's own stands beside it."""
    names = fleet.names()
    return {
        "owned_by": ", ".join(names[holder.worker] for holder in row.holders),
        "kind": "model",
        "context": row.context,
        "capabilities": row.capabilities,
        "held_by": row.holders,
    }


def _anthropic(row: dict[str, Any]) -> dict[str, Any]:
    """``capabilities`` is an object of a dozen promises there; what a backend declares answers few of them: unknown is null."""
    made = datetime.fromtimestamp(row["created"], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    theirs = {"capabilities": None, "lifecycle": "active", "max_input_tokens": row["context"], "max_tokens": None}
    kept = {name: row[name] for name in ("kind", "context", "held_by")}
    return {"type": "model", "id": row["id"], "display_name": row["id"], "created_at": made, **theirs, **kept}
