"""The OpenAI-compatible chat completions: ``/v1/chat/completions`` (docs/http/openai.md)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from schemas.work import Answer
from services.router.http.chat_reply import Chunks, Told, completion
from services.router.http.chat_request import chat_task
from services.router.http.chat_status import Statuses, is_open_webui
from services.router.http.live import Timing
from services.router.http.reading import read_json
from services.router.http.speaking import Whole, now_s, summed
from services.router.http.streaming import Streamed
from services.router.http.submitting import copies, submit_all
from services.router.port import RouterPort


def openai_routes(router: RouterPort, timing: Timing) -> APIRouter:
    routes = APIRouter()

    @routes.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        asked, task = chat_task(await read_json(request), request.headers, router.fleet())
        submitted = await submit_all(router, copies(task, asked.n or 1))
        if not asked.stream:
            return Whole(router, submitted, timing, _whole)
        shown = is_open_webui(request.headers) and task.urgency != "background"
        chunks = partial(Chunks, submitted[0].task, now_s(), usage=asked.wants_usage)
        return Streamed(
            router,
            submitted,
            timing,
            [
                chunks(index=at, statuses=Statuses(router) if shown and at == 0 else None)
                for at in range(len(submitted))
            ],
            early=shown,
            choices=len(submitted),
        )

    return routes


def _whole(answers: Sequence[Answer], created: int, told: Told) -> dict[str, Any]:
    return completion(answers, created, told, summed([answer.tokens for answer in answers], len(answers)))
