"""Ollama's surface: the fleet as one big Ollama, for its command line and whatever speaks Ollama (docs/http/ollama.md)."""

from __future__ import annotations

import importlib.metadata

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from schemas.errors import UnknownModel
from services.router.http import ollama_models
from services.router.http.live import Timing
from services.router.http.ollama_reply import empty
from services.router.http.ollama_request import (
    Asked,
    Asking,
    ChatAsked,
    EmbedAsked,
    EmbeddingsAsked,
    GenerateAsked,
    chat_task,
    embed_task,
    generate_task,
    model_name,
)
from services.router.http.ollama_stream import OllamaStream, OllamaWhole, embed_body, embedding_body, whole_body
from services.router.http.overview import RUNNING
from services.router.http.reading import BadRequest, read_json, typed
from services.router.http.replies import Json
from services.router.nearest import known_models, nearest, resolve_model
from services.router.port import RouterPort


def ollama_routes(router: RouterPort, timing: Timing) -> APIRouter:
    routes = APIRouter()
    _add_lists(routes, router)
    _add_answers(routes, router, timing)
    _add_embeddings(routes, router, timing)
    return routes


def _add_lists(routes: APIRouter, router: RouterPort) -> None:
    @routes.head("/")
    async def there() -> Response:
        return PlainTextResponse(RUNNING)

    @routes.api_route("/api/version", methods=["GET", "HEAD"])
    async def version() -> Response:
        return Json({"version": ollama_models.API_VERSION, "headrace": importlib.metadata.version("headrace")})

    @routes.api_route("/api/tags", methods=["GET", "HEAD"])
    async def tags() -> Response:
        return Json({"models": ollama_models.tags(router.fleet(), router.routes().routes)})

    @routes.get("/api/ps")
    async def running() -> Response:
        return Json({"models": ollama_models.running(router.fleet())})

    @routes.post("/api/show")
    async def show(request: Request) -> Response:
        values = await read_json(request)
        asked = typed({"model": values.get("model") or values.get("name") or ""}, Asked)
        name, _ = _known(router, asked.model)
        return Json(ollama_models.show(name, router.fleet(), router.routes().routes))


def _add_answers(routes: APIRouter, router: RouterPort, timing: Timing) -> None:
    @routes.post("/api/chat")
    async def chat(request: Request) -> Response:
        asked, by = typed(await read_json(request), ChatAsked), _asking(router, request)
        _, named = _known(router, asked.model)
        if not asked.messages:
            return _empty(asked, chat=True)
        submitted = await router.submit(chat_task(asked, by))
        if asked.streams:
            return OllamaStream(router, submitted, timing, named, chat=True)
        return OllamaWhole(router, submitted, timing, whole_body(named, chat=True))

    @routes.post("/api/generate")
    async def generate(request: Request) -> Response:
        asked, by = typed(await read_json(request), GenerateAsked), _asking(router, request)
        _, named = _known(router, asked.model)
        if not asked.prompt:
            return _empty(asked, chat=False)
        submitted = await router.submit(generate_task(asked, by))
        if asked.streams:
            return OllamaStream(router, submitted, timing, named, chat=False)
        return OllamaWhole(router, submitted, timing, whole_body(named, chat=False))


def _add_embeddings(routes: APIRouter, router: RouterPort, timing: Timing) -> None:
    @routes.post("/api/embed")
    async def embed(request: Request) -> Response:
        asked, by = typed(await read_json(request), EmbedAsked), _asking(router, request)
        _known(router, asked.model)
        if not asked.inputs:
            return Json({"model": asked.model, "embeddings": []})
        submitted = await router.submit(embed_task(asked, by))
        return OllamaWhole(router, submitted, timing, embed_body(asked.model, asked.dimensions))

    @routes.post("/api/embeddings")
    async def embeddings(request: Request) -> Response:
        asked, by = typed(await read_json(request), EmbeddingsAsked), _asking(router, request)
        _known(router, asked.model)
        if not asked.prompt:
            return Json({"embedding": []})
        return OllamaWhole(router, await router.submit(embed_task(asked, by)), timing, embedding_body)


def _asking(router: RouterPort, request: Request) -> Asking:
    return Asking(
        headers=request.headers,
        fleet=router.fleet(),
        virtual=router.routes().routes.names,
        path=request.url.path,
    )


def _known(router: RouterPort, model: str) -> tuple[str, str | None]:
    """The name as we know it, and the one to repeat in replies: a route has none, since one of its models answers.

    Raises UnknownModel also for requests that run nothing."""
    if not model:
        raise BadRequest("model is required", "model")
    virtual = router.routes().routes.names
    name = model_name(model, virtual)
    if name in virtual:
        return name, None
    fleet = router.fleet()
    if resolve_model(fleet, name) is None:
        raise UnknownModel(model, nearest(model, (*known_models(fleet), *virtual)))
    return name, model


def _empty(asked: ChatAsked | GenerateAsked, *, chat: bool) -> Response:
    """Nothing is loaded or unloaded by it: what stays in a machine's memory is its owner's to say."""
    return Json(empty(asked.model, "unload" if asked.wants_unload else "load", chat=chat))
