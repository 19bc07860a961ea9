"""All HTTP surfaces as one application over the router's port. Every error leaves in the form of the path that was asked."""

from __future__ import annotations

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from schemas.errors import HeadraceError
from services.router.http.access import Access
from services.router.http.anthropic import anthropic_routes
from services.router.http.benching import bench_routes
from services.router.http.compare import compare_routes
from services.router.http.completions import completion_routes
from services.router.http.deciding import deciding_routes
from services.router.http.embeddings import embedding_routes
from services.router.http.feedback import feedback_routes
from services.router.http.gate import Gate
from services.router.http.live import Timing
from services.router.http.metrics import metrics_routes
from services.router.http.models import model_routes
from services.router.http.native import native_routes
from services.router.http.ollama import ollama_routes
from services.router.http.ollama_pull import pull_routes
from services.router.http.openai import openai_routes
from services.router.http.openapi import describe
from services.router.http.origins import Origins
from services.router.http.overview import overview_routes
from services.router.http.page.routes import page_routes
from services.router.http.page.watching import Watchers
from services.router.http.pausing import pausing_routes
from services.router.http.problems import INTERNAL, Problem, http_problem, problem_of, respond_to
from services.router.http.responses import responses_routes
from services.router.http.stats_routes import stats_routes
from services.router.http.tries import Tries
from services.router.port import RouterPort
from services.runtime.logs import logger

log = logger("http")
STEPS_MAX = 8
"""A longer path is nobody's slip."""
BASES = {"/v1": "GET /v1/models", "/api": "GET /api/tags"}
"""What people open to see whether anybody is there, and what tells them."""


def create_app(router: RouterPort, *, timing: Timing | None = None, access: Access | None = None) -> FastAPI:
    """``timing`` is for tests; the defaults are what docs/http.md promises. ``access``: who may ask; everybody unless said."""
    timing, access, tries = timing or Timing(), access or Access(), Tries()
    # The interactive pages would load scripts from elsewhere; /openapi.json stays.
    app = FastAPI(title="Headrace", docs_url=None, redoc_url=None, redirect_slashes=False)
    app.add_middleware(Gate, access=access, tries=tries)
    app.add_middleware(Origins, access=access)
    watchers = Watchers(router)
    app.state.before_stop = watchers.close
    app.include_router(native_routes(router, timing))
    app.include_router(deciding_routes(router))
    app.include_router(page_routes(router, timing, access, tries, watchers))
    app.include_router(overview_routes(router))
    app.include_router(stats_routes(router))
    app.include_router(metrics_routes(router))
    app.include_router(pausing_routes(router))
    app.include_router(bench_routes(router))
    app.include_router(feedback_routes(router))
    app.include_router(compare_routes(router, timing))
    app.include_router(openai_routes(router, timing))
    app.include_router(completion_routes(router, timing))
    app.include_router(embedding_routes(router, timing))
    app.include_router(model_routes(router))
    app.include_router(responses_routes(router, timing))
    app.include_router(anthropic_routes(router, timing))
    app.include_router(ollama_routes(router, timing))
    app.include_router(pull_routes(router, timing))
    describe(app)
    app.add_exception_handler(HeadraceError, _on_refusal)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(ClientDisconnect, _on_gone)
    app.add_exception_handler(Exception, _on_crash)
    return app


async def _on_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HeadraceError)
    return _answer(request, problem_of(error))


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("allow") or (error.headers or {}).get("Allow")
    may = f", only {allowed}" if error.status_code == 405 and allowed else ""
    ask = _way_out(request) if error.status_code == 404 else ""
    words = f"{request.method} {request.scope['path']}: {error.detail}{may}{ask}; GET /openapi.json lists the paths"
    return _answer(request, http_problem(error.status_code, words))


async def _on_gone(request: Request, error: Exception) -> Response:
    """The client left while it was still sending: nobody reads this."""
    return Response(status_code=400)


async def _on_crash(request: Request, error: Exception) -> Response:
    log.error(
        "request failed", action="request_failed", path=request.url.path, error=type(error).__name__, exc_info=error
    )
    return _answer(request, INTERNAL)


def _way_out(request: Request) -> str:
    if tells := BASES.get(request.scope["path"].rstrip("/")):
        return f": it is a base URL for clients; {tells} lists the models"
    meant = _meant(request)
    return f"; is {meant} meant? A client's base URL may lack its /v1, or have too much" if meant else ""


def _meant(request: Request) -> str | None:
    """A path of ours that this one nearly is: without its beginning, with one before it, with a slash too many, or with its end
    twice, where somebody gave the whole path as a client's base URL."""
    known = request.app.openapi()["paths"].keys() - {"/"}
    steps = [step for step in request.scope["path"].split("/") if step]
    if not 0 < len(steps) <= STEPS_MAX:
        return None
    tails = ["/" + "/".join(steps[at:]) for at in range(len(steps))]
    near = [f"{before}{tails[0]}" for before in ("", "/v1", "/api")]
    heads = [tails[0].removesuffix(tail) for tail in tails[1:] if tails[0].removesuffix(tail).endswith(tail)]
    return next((path for path in (*near, *tails, *heads) if path in known), None)


def _answer(request: Request, problem: Problem) -> Response:
    return respond_to("/" + request.scope["path"].lstrip("/"), problem)
