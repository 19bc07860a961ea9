"""Headrace's paths about what was measured (docs/http.md): rows, heat maps, a picture, and what one number is made of.

From memory (the judges' records apart: the projector folds those), and a page at a time: the router decides nothing while it
writes an answer.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TypeVar, get_args

from fastapi import APIRouter, Request
from starlette.responses import Response

from schemas.scales import Of
from services.router.http.reading import BadRequest, typed
from services.router.http.replies import Json
from services.router.http.stats_explained import ExplainCell, explained, filter_of
from services.router.http.stats_filter import Count, StatsFilter, resolved
from services.router.http.stats_maps import HeatMap, MapFilter, heat_map
from services.router.http.stats_rows import stats_page
from services.router.http.stats_svg import svg
from services.router.port import RouterPort

F = TypeVar("F", bound=StatsFilter)


class PictureFilter(MapFilter, frozen=True, kw_only=True):
    """As much as is still read on a page; more of it is asked for by name."""

    rows: Count = 60
    columns: Count = 16


def stats_routes(router: RouterPort) -> APIRouter:
    routes = APIRouter()

    def asked(request: Request, kind: type[F], *others: str) -> F:
        """The query, its names resolved; ``others`` are read elsewhere."""
        query = {name: value for name, value in request.query_params.items() if name not in others}
        return resolved(typed(query, kind, strict=False), router.statistics(), router.fleet())

    def maps(request: Request, wanted: MapFilter) -> tuple[HeatMap, ...]:
        of = request.query_params.get("of")
        if of not in (None, *get_args(Of)):
            raise BadRequest(f"of is {of!r}; expected decode or quality", "of", get_args(Of))
        chosen: tuple[Of, ...] = get_args(Of) if of is None else (of,)
        return tuple(heat_map(each, router.statistics(), router.fleet(), wanted) for each in chosen)

    @routes.get("/stats")
    async def stats(request: Request) -> Response:
        page = stats_page(router.statistics(), router.fleet(), asked(request, StatsFilter), _now_us())
        return Json(
            {
                "position": router.statistics().position,
                "total": page.total,
                "next_offset": page.next_offset,
                "rows": page.rows,
            }
        )

    @routes.get("/stats/explain")
    async def explain(request: Request) -> Response:
        cell = filter_of(typed(dict(request.query_params), ExplainCell))
        wanted = resolved(cell, router.statistics(), router.fleet())
        return Json(explained(router.statistics(), router.fleet(), wanted, _now_us()))

    @routes.get("/stats/map")
    async def stats_map(request: Request) -> Response:
        found = maps(request, asked(request, MapFilter, "of"))
        return Json({"position": router.statistics().position, "maps": found})

    @routes.get("/stats.svg")
    async def picture(request: Request) -> Response:
        found = maps(request, asked(request, PictureFilter, "of"))
        return Response(svg(found, _note(router)), media_type="image/svg+xml")

    @routes.get("/stats/judges")
    async def judges() -> Response:
        records = await router.judges()
        return Json({"position": records.position, "judges": records.judges})

    return routes


def _note(router: RouterPort) -> str:
    return f"Headrace, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, up to event {router.statistics().position}"


def _now_us() -> int:
    return int(time.time() * 1_000_000)
