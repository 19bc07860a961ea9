"""Embeddings: ``/v1/embeddings``. Many texts become several tasks, since one answer must fit into one message.

It never lets the choice of the model open where there are several: vectors of two models cannot be compared.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from schemas.events import Options
from schemas.work import Answer, Body
from services.router.fleet import Fleet
from services.router.http.asking import Count, Name, RoutedConstraints, given, wanted_model
from services.router.http.chat_reply import Told
from services.router.http.chat_request import asker_of, task_of
from services.router.http.live import Timing
from services.router.http.reading import BadRequest, read_json, typed
from services.router.http.speaking import Whole, summed
from services.router.http.submitting import submit_all
from services.router.policy.filters import EMBEDDING
from services.router.port import NewTask, RouterPort

PATH = "/v1/embeddings"
INPUTS_MAX = 2048
"""OpenAI's own bound."""
BATCH = 64
"""64 vectors of 4,096 numbers are 5.4 MB of JSON; a message of NATS has at most 8 MB here."""


class EmbeddingRequest(msgspec.Struct, frozen=True, kw_only=True):
    input: Any
    model: Name | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Count | None = None
    headrace: RoutedConstraints | None = None


TAKEN = frozenset(EmbeddingRequest.__struct_fields__)


def embedding_routes(router: RouterPort, timing: Timing) -> APIRouter:
    routes = APIRouter()

    @routes.post(PATH)
    async def embed(request: Request) -> Response:
        fleet, names = router.fleet(), router.routes().routes.names
        asked, tasks = embedding_tasks(await read_json(request), request.headers, fleet, names)
        is_base64 = asked.encoding_format == "base64"
        return Whole(router, await submit_all(router, tasks), timing, lambda *told: _whole(*told, is_base64=is_base64))

    return routes


def embedding_tasks(
    values: dict[str, Any], headers: Mapping[str, str], fleet: Fleet, routes: Sequence[str] = ()
) -> tuple[EmbeddingRequest, list[NewTask]]:
    """Raises BadRequest naming the field."""
    request = typed(values, EmbeddingRequest)
    inputs = texts_of(request.input)
    extra = given(values, TAKEN) | ({"dimensions": request.dimensions} if request.dimensions is not None else {})
    asker = asker_of(headers, PATH, request.headrace, None)
    task = task_of(Body(extra=extra), Options(), model_of(request.model, fleet), request.headrace, asker, fleet)
    task = msgspec.structs.replace(task, kind="embedding", session=None)
    parts = [inputs[at : at + BATCH] for at in range(0, len(inputs), BATCH)]
    return request, [msgspec.structs.replace(task, body=Body(inputs=tuple(part), extra=extra)) for part in parts]


def texts_of(given_input: Any) -> list[str]:
    """Raises BadRequest for what is no text or list of texts."""
    inputs = [given_input] if isinstance(given_input, str) else given_input
    if not isinstance(inputs, list) or not inputs:
        raise BadRequest("input: expected a text or a list of texts", "input")
    if not all(isinstance(each, str) for each in inputs):
        raise BadRequest(
            "input holds tokens; they mean something to one model's tokeniser only: send texts, which any model can read "
            "(LangChain: check_embedding_ctx_length=False)",
            "input",
        )
    if len(inputs) > INPUTS_MAX:
        raise BadRequest(f"input has {len(inputs)} texts; at most {INPUTS_MAX} are allowed", "input")
    return inputs


def model_of(model: str | None, fleet: Fleet) -> str | None:
    """The model named, else the only one that embeds. Raises BadRequest where several do."""
    wanted = wanted_model(model)
    infos = (info for worker in fleet.workers.values() for info in worker.models.values())
    able = sorted({info.name for info in infos if EMBEDDING in (info.capability, *info.capabilities)})
    if wanted is None and len(able) > 1:
        raise BadRequest(
            f"model: vectors of different models cannot be compared; name one of {', '.join(able)}",
            "model",
            tuple(able),
        )
    return wanted if wanted is not None or not able else able[0]


def _whole(answers: Sequence[Answer], created: int, told: Told, *, is_base64: bool) -> dict[str, Any]:
    vectors = [vector for answer in answers for vector in answer.vectors]
    tokens = summed([answer.tokens for answer in answers])
    prompt = tokens.prompt if tokens is not None else None
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": at, "embedding": _base64(vector) if is_base64 else vector}
            for at, vector in enumerate(vectors)
        ],
        "model": answers[0].model,
        "usage": {"prompt_tokens": prompt, "total_tokens": prompt} if prompt is not None else None,
        "headrace": told,
    }


def _base64(vector: Sequence[float]) -> str:
    """Little-endian 32-bit floats, as OpenAI's clients read them."""
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
