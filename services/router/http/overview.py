"""Headrace's own paths about the fleet: machines, models, queue, health (docs/http.md). All from memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from services.router.http.fleet_rows import model_rows, worker_rows
from services.router.http.identity import speaks_ollama
from services.router.http.replies import Json
from services.router.policy.nobody import warnings
from services.router.policy.routes import Route
from services.router.port import RouterPort, TaskStatus

RUNNING = "Ollama is running"
"""What Ollama's clients look for at ``/``."""
WELCOME = """\
This is a Headrace router. A browser sees its page here.

  GET  /workers  /models  /routes  /stats  /stats.svg  /queue  /readyz  /metrics
  POST /route                  submit a prompt; then GET /task/{id}/stream
  GET  /route/preview?prompt=  what it would decide
  GET  /explain/{id}           why it decided so
  POST /compare  /feedback     everybody's answers side by side; what one was worth
  GET  /bench                  what is measured unasked; POST has the suites run
  GET  /openapi.json           all paths
  POST /v1/chat/completions    for any OpenAI client, with model "auto" or one of GET /v1/models
  POST /v1/messages            for Anthropic's clients

Ollama is running, in a way: OLLAMA_HOST set to this address shows the fleet to whatever speaks Ollama.
"""


def welcome(request: Request) -> Response:
    """For whoever is no browser; browsers get the page."""
    words = RUNNING if speaks_ollama(request.headers) else WELCOME
    return PlainTextResponse(words, headers={"vary": "accept"})


def overview_routes(router: RouterPort) -> APIRouter:
    routes = APIRouter()

    @routes.get("/workers")
    async def workers() -> Response:
        return Json({"workers": worker_rows(router.fleet())})

    @routes.get("/models")
    async def models() -> Response:
        return Json({"models": model_rows(router.fleet()), "virtual": router.routes().routes.names})

    @routes.get("/routes")
    async def virtual() -> Response:
        now = router.routes()
        rows = [_shown(now.routes.routes[name]) for name in sorted(now.routes.routes)]
        told = {"problem": now.problem, "warnings": warnings(now.routes, router.fleet())}
        return Json({"virtual": now.routes.names, "routes": rows, "path": now.path, **told})

    @routes.get("/queue")
    async def queue() -> Response:
        tasks = router.queue()
        states = Counter(task.state for task in tasks)
        counts = {state: states[state] for state in ("waiting", "released", "running")}
        tally = router.measures().tally
        served = {"releases": tally.releases.total(), "deviations": tally.deviations.total()}
        names = router.fleet().names()
        return Json({**counts, "since_start": served, "tasks": [_named(task, names) for task in tasks]})

    @routes.head("/healthz", include_in_schema=False)
    @routes.get("/healthz")
    async def healthz() -> Response:
        return Json({"ok": True})

    @routes.head("/readyz", include_in_schema=False)
    @routes.get("/readyz")
    async def readyz() -> Response:
        readiness = router.readiness()
        return Json(readiness, 200 if readiness.ready else 503)

    return routes


def _named(task: TaskStatus, names: Mapping[str, str]) -> dict[str, Any]:
    """With what its machines are called; null where there is none, or where it left."""
    called = {
        "worker_name": names.get(task.worker or ""),
        "expected_worker_name": names.get(task.expected_worker or ""),
    }
    return msgspec.structs.asdict(task) | called


def _shown(route: Route) -> Route:
    """Without what may be a secret in the address of its decision service."""
    if route.decision is None:
        return route
    decision = msgspec.structs.replace(route.decision, url=route.decision.public_url)
    return msgspec.structs.replace(route, decision=decision)
