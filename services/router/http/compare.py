"""How does one ask many at once (docs/http.md, "POST /compare")? The request to a comparison, what happens to SSE events."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from schemas.errors import UnknownModel
from schemas.events import Urgency
from services.router.comparing import Closed, Comparing, Happening, Judged, NewComparison, Opened, Told
from services.router.http.asking import Count, Limit, Name, Sampling, Seconds, Slider, limit_of, worker_id
from services.router.http.compare_rows import compared, ended_row, entry_row, removed_rows
from services.router.http.live import SSE_HEADERS, Lasting, Line, Timing
from services.router.http.native import TASK_ID
from services.router.http.problems import Problem, UnknownTask, native_form, respond
from services.router.http.reading import read_json, typed
from services.router.http.replies import Json
from services.router.http.route_request import RouteRequest, route_task
from services.router.http.task_stream import sse_event, token_piece
from services.router.nearest import known_models, nearest, resolve_model
from services.router.port import Busy, EndUpdate, RestartUpdate, RouterPort, StatusUpdate, TokenUpdate
from services.runtime.ids import new_id

Names = Annotated[list[Name], msgspec.Meta(max_length=64)]
START_S = 600.0
"""How long an answer may wait for its machine unless it is said: one that falls asleep must not keep the others' reader for ever,
and eight models of one machine take their minutes one after the other."""
AGAIN_S = 5.0
"""A machine that was paused or fell silent may be back by then."""


class CompareConstraints(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """As in ``POST /route``, but for the worker, and a class of its own: one comparison is as many tasks as there are machines,
    so it goes behind everybody's chat unless it says otherwise, and waits for no machine for ever unless it says null."""

    capability: Name | None = None
    context: Count | None = None
    max_tokens: Limit | None = None
    deadline_s: Seconds | None = START_S
    domain: Name | None = None
    urgency: Urgency = "batch"
    slider: Slider | None = None


class CompareRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of ``POST /compare``. No ``models`` or ``workers``: all. ``judge``: true, or the model that judges."""

    prompt: str | None = None
    messages: list[Any] | None = None
    models: Names | None = None
    workers: Names | None = None
    judge: bool | Name = False
    client: Name | None = None
    session: Name | None = None
    constraints: CompareConstraints | None = None
    options: Sampling | None = None
    extra: dict[str, Any] | None = None


def compare_routes(router: RouterPort, timing: Timing) -> APIRouter:
    routes = APIRouter()

    @routes.post("/compare")
    async def compare(request: Request) -> Response:
        asked = typed(await read_json(request), CompareRequest)
        return CompareStream(router, _comparison(router, asked, request), timing)

    @routes.get("/compare/{compare}")
    async def look(compare: str) -> Response:
        tasks = await router.comparison(compare) if TASK_ID.fullmatch(compare) else ()
        if not tasks:
            raise UnknownTask(compare, f"no comparison {compare[:64]!r} is known")
        return Json(await compared(router, compare, tasks))

    return routes


def _comparison(router: RouterPort, asked: CompareRequest, request: Request) -> NewComparison:
    """Raises BadRequest, UnknownModel, or Busy where nobody may answer now, with every reason."""
    fleet, said = router.fleet(), asked.constraints or CompareConstraints()
    judge = asked.judge
    if isinstance(judge, str):
        found = resolve_model(fleet, judge)
        if found is None:
            raise UnknownModel(judge, nearest(judge, known_models(fleet)))
        judge = found
    workers = [worker_id(fleet, name, "workers") or name for name in asked.workers or ()]
    request_ = RouteRequest(
        prompt=asked.prompt, messages=asked.messages, client=asked.client, session=asked.session,
        options=asked.options, extra=asked.extra,
    )  # fmt: skip
    task = route_task(request_, request.headers, fleet)
    task = msgspec.structs.replace(
        task,
        kind="compare",
        urgency=said.urgency,
        wants=msgspec.structs.replace(task.wants, capability=said.capability, context=said.context),
        options=msgspec.structs.replace(
            task.options, max_tokens=limit_of(said.max_tokens, "constraints.max_tokens"), slider=said.slider
        ),
        domain=said.domain,
        deadline_s=said.deadline_s,
    )
    who = router.eligible(task, asked.models or (), workers)
    if not who.candidates:
        names = fleet.names()
        reasons = "; ".join(f"{r.model} on {names.get(r.worker or '', r.worker)}: {r.reason}" for r in who.removed)
        empty = "none of these machines holds one of these models" if names else "no machine has joined"
        raise Busy(
            f"nobody may answer this now: {reasons or empty}",
            retry_after_s=AGAIN_S, status=503,
        )  # fmt: skip
    return NewComparison(id=new_id(), task=task, candidates=who.candidates, removed=who.removed, judge=judge)


class CompareStream(Lasting):
    """Every happening under its own event name, with the entry's number; a client that leaves cancels what runs."""

    def __init__(self, router: RouterPort, asked: NewComparison, timing: Timing) -> None:
        super().__init__(router, timing)
        self.asked = asked

    async def follow(self, line: Line) -> None:
        async with aclosing(Comparing(self.router, self.asked).run()) as happenings:
            async for happened in happenings:
                await self.begin(line)
                await line.write(self._event(happened))
        await line.close()

    async def begin(self, line: Line) -> None:
        await line.open({**SSE_HEADERS, "x-headrace-compare": self.asked.id})

    async def on_failure(self, line: Line, problem: Problem) -> None:
        if line.is_open:
            await line.write(sse_event("error", native_form(problem)["error"]))
        else:
            response = respond(problem)
            await line.open(dict(response.headers), problem.status)
            await line.write(bytes(response.body))
        await line.close()

    def _event(self, happened: Happening) -> bytes:
        match happened:
            case Opened():
                opened = {
                    "compare": self.asked.id, "domain": happened.domain, "language": happened.language,
                    "entries": [entry_row(self.router, e.number, e.task, e.candidate) for e in happened.entries],
                    "removed": removed_rows(self.router, happened.removed), "warning": happened.warning,
                }  # fmt: skip
                return sse_event("compare", opened)
            case Judged():
                return sse_event("judged", happened)
            case Closed():
                return sse_event("done", {"compare": self.asked.id, "judged": happened.judged})
        return self._update(happened)

    def _update(self, told: Told) -> bytes:
        entry = {"entry": told.entry.number}
        match told.update:
            case TokenUpdate():
                return sse_event("token", entry | token_piece(told.update))
            case StatusUpdate(status=status):
                return sse_event("status", entry | msgspec.structs.asdict(status))
            case RestartUpdate(attempt=attempt, reason=reason):
                return sse_event("restart", entry | {"attempt": attempt, "reason": reason})
            case EndUpdate(status=status, answer=answer):
                return sse_event("end", entry | ended_row(self.router, status, answer, told.entry.candidate))
