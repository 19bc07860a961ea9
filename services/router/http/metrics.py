"""``GET /metrics`` for Prometheus: the router's memory, read at the moment of the scrape (docs/operations.md).

It asks nobody and keeps nothing; a scrape costs one planning pass.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from fastapi import APIRouter
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector
from starlette.responses import Response

from services.router.http.metric_rows import families
from services.router.port import RouterPort


class RouterCollector(Collector):
    def __init__(self, router: RouterPort) -> None:
        self._router = router

    def collect(self) -> Iterable[Metric]:
        router = self._router
        now_us = int(time.time() * 1_000_000)
        return families(router.measures(), router.fleet(), router.statistics(), router.readiness(), now_us)


def metrics_routes(router: RouterPort) -> APIRouter:
    routes = APIRouter()
    registry = CollectorRegistry(auto_describe=False)
    registry.register(RouterCollector(router))

    @routes.get("/metrics")
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_PLAIN_0_0_4)

    return routes
