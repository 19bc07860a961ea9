"""Which kind of server answers at this URL?

It asks a few free questions, each with a short limit, and believes the answer's contents: LM Studio answers 200 to paths that
it does not have, and single-model servers answer to any model's name.
"""

from __future__ import annotations

from typing import Any

import httpx

from schemas.errors import BackendError
from services.worker.backends import wire
from services.worker.backends.ollama import Ollama
from services.worker.backends.openai import OpenAI
from services.worker.backends.openai_body import LLAMA_CPP, LM_STUDIO, OTHER, VLLM
from services.worker.backends.port import Backend

USUAL_PLACES = (
    "http://127.0.0.1:11434",  # Ollama
    "http://127.0.0.1:1234",  # LM Studio
    "http://127.0.0.1:8080",  # llama.cpp
    "http://127.0.0.1:8000",  # vLLM
)
"""Where local backends listen unless told otherwise."""


async def detect(url: str, *, connect_s: float = 5.0, transport: httpx.AsyncBaseTransport | None = None) -> Backend:
    """The backend at ``url``, with or without ``/v1``. Raises BackendError where nothing answers or nothing is known."""
    root = url.rstrip("/").removesuffix("/v1").removesuffix("/api")
    http = wire.client(root, connect_s=connect_s, transport=transport)
    try:
        kind = await _kind(http, root)
    except BaseException:
        await http.aclose()
        raise
    return Ollama(root, http) if kind == Ollama.kind else OpenAI(root, kind, http)


async def _kind(http: httpx.AsyncClient, root: str) -> str:
    version, problem = await _try(http, "/api/version")
    if isinstance(version.get("version"), str):
        return Ollama.kind
    if problem is not None and problem.failure in ("disconnect", "timeout"):
        raise BackendError(problem.failure, f"nothing answers at {root}: {problem.detail}; is the server running?")
    studio, _ = await _try(http, "/api/v0/models")
    if any("state" in model for model in _models(studio)):
        return LM_STUDIO
    listed, problem = await _try(http, "/v1/models")
    if problem is not None and problem.failure == "busy":
        raise problem  # llama.cpp while it loads its model
    models = _models(listed)
    owners = {model.get("owned_by") for model in models}
    if "llamacpp" in owners:
        return LLAMA_CPP
    if "vllm" in owners or any("max_model_len" in model for model in models):
        return VLLM
    if "data" in listed:
        return OTHER
    known = "Ollama, llama.cpp, vLLM, LM Studio or another OpenAI-compatible server"
    raise BackendError(
        "protocol", f"the server at {root} is none that Headrace knows; expected {known}", retryable=False
    )


async def _try(http: httpx.AsyncClient, path: str) -> tuple[dict[str, Any], BackendError | None]:
    try:
        body = await wire.ask(http, path)
    except BackendError as error:
        return {}, error
    return (body if isinstance(body, dict) else {}), None


def _models(body: dict[str, Any]) -> list[dict[str, Any]]:
    listed = body.get("data")
    return [model for model in listed if isinstance(model, dict)] if isinstance(listed, list) else []
