"""How does a model come to a machine, in Ollama's form? To one machine that is named, for an admin; everything else that would
change a machine's models is refused with the reason."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from schemas.errors import HeadraceError
from schemas.work import PullFault, PullProgress
from services.router.fleet import Fleet, WorkerView
from services.router.http.asking import Name, worker_id
from services.router.http.gate import need_admin
from services.router.http.live import Lasting, Line, Timing
from services.router.http.ollama_stream import NDJSON
from services.router.http.problems import AGAIN_S, Problem, ollama_form, respond
from services.router.http.reading import BadRequest, Refused, read_json, typed
from services.router.port import RouterPort

OLLAMA = "ollama"
REFUSED = {
    ("DELETE", "/api/delete"): "deletes no model: it belongs to the machine that holds it, and others may use it",
    ("POST", "/api/create"): "makes no model: create it on the machine that shall hold it, and it appears here",
    ("POST", "/api/copy"): "copies no model; give it its second name in the router's settings, [models]",
    ("POST", "/api/push"): "uploads no model; push it from the machine that holds it",
    ("POST", "/api/blobs/{digest}"): "takes no files; create the model on the machine that shall hold it",
}
"""What these paths would do, and why not."""


class PullAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Ollama's request, with the machine. ``insecure`` is the machine's own business."""

    model: Name
    worker: Name | None = None
    stream: bool | None = None


def pull_routes(router: RouterPort, timing: Timing) -> APIRouter:
    routes = APIRouter()

    @routes.post("/api/pull")
    async def pull(request: Request) -> Response:
        need_admin(request, "have a model fetched")
        values = await read_json(request)
        asked = typed({**values, "model": values.get("model") or values.get("name") or ""}, PullAsked)
        worker = puller(router.fleet(), asked.worker, asked.model)
        return Pull(router, timing, worker, asked.model, streams=asked.stream is not False)

    for (method, path), reason in REFUSED.items():
        routes.add_api_route(path, _refusing(reason), methods=[method])
    return routes


def puller(fleet: Fleet, wanted: str | None, model: str) -> str:
    """The id of the machine: the one that is named, or the only one that can. Raises BadRequest or HeadraceError."""
    able = [worker for worker in fleet.workers.values() if worker.backend == OLLAMA]
    names = ", ".join(sorted(worker.name for worker in able)) or "none of the fleet"
    found = worker_id(fleet, wanted, "worker")
    if found is None:
        if not able:
            raise BadRequest(
                f"nobody here has {model!r} or an Ollama that could fetch it; GET /models lists what there is"
            )
        if len(able) != 1:
            raise BadRequest(
                f'worker: name the machine that shall fetch it, by `headrace pull {model} --on MACHINE` or {{"worker": …}}; '
                f"with Ollama: {names}",
                "worker",
            )
        found = able[0].id
    worker = fleet.workers[found]
    if worker.backend != OLLAMA:
        raise BadRequest(
            f"worker: {worker.name} runs {worker.backend or 'no model server'}, which cannot fetch models; with Ollama: {names}",
            "worker",
        )
    return _present(worker).id


def line_of(word: PullProgress) -> dict[str, Any]:
    """As Ollama writes it: what is not known is left out."""
    if word.error is not None:
        return {"error": word.error}
    figures = {"digest": word.digest, "total": word.total, "completed": word.completed}
    return {"status": word.status, **{name: value for name, value in figures.items() if value is not None}}


class Pull(Lasting):
    """A download for as long as somebody reads it."""

    def __init__(self, router: RouterPort, timing: Timing, worker: str, model: str, *, streams: bool) -> None:
        super().__init__(router, timing)
        self._worker, self._model, self._streams = worker, model, streams
        self._last = b""

    def still_here(self) -> bytes:
        return self._last

    async def follow(self, line: Line) -> None:
        async with self.router.pull(self._worker, self._model) as words:
            async for word in words:
                if self._streams:
                    await self._write(line, word)
                elif word.error is not None:
                    await self.on_failure(line, _problem(self._model, word.code, word.error))
                    return
        if not self._streams:
            await line.open({"content-type": "application/json"})
            await line.write(b'{"status":"success"}')
        await line.close()

    async def on_failure(self, line: Line, problem: Problem) -> None:
        if line.is_open:
            await line.write(msgspec.json.encode(ollama_form(problem)) + b"\n")
        else:
            response = respond(problem, form=ollama_form)
            await line.open(dict(response.headers), response.status_code)
            await line.write(bytes(response.body))
        await line.close()

    async def _write(self, line: Line, word: PullProgress) -> None:
        if not line.is_open:
            await line.open(NDJSON)
        self._last = msgspec.json.encode(line_of(word)) + b"\n"
        await line.write(self._last)


def _problem(model: str, code: PullFault | None, words: str) -> Problem:
    """Nothing but a 503 that says when to try again is a 5xx; an older worker does not say which it is."""
    if code == "not_found":
        return Problem(status=404, code="not_found", message=f"model '{model}' not found: {words}")
    if code == "rejected":
        return Problem(status=400, code="rejected", message=words)
    return Problem(status=503, code="unavailable", message=words, retry_after_s=AGAIN_S)


def _present(worker: WorkerView) -> WorkerView:
    if not worker.alive or worker.backend_up is False:
        raise HeadraceError(
            f"{worker.name} was not heard lately, or its Ollama does not answer; try again when it is back"
        )
    return worker


def _refusing(reason: str) -> Callable[[], Awaitable[Response]]:
    async def refuse() -> Response:
        raise Refused(f"the router {reason}", 403)

    return refuse
