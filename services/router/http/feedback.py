"""How does somebody say what an answer was worth (docs/http.md)? A rating, or a choice among a comparison's answers, to facts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from services.router.http.asking import Name, Share
from services.router.http.gate import caller_of
from services.router.http.headers import worker_name
from services.router.http.identity import client_of
from services.router.http.native import TASK_ID
from services.router.http.problems import UnknownTask
from services.router.http.reading import BadRequest, read_json, typed
from services.router.http.replies import Json
from services.router.port import RouterPort
from services.router.rating import THUMBS, Pick, Rated, Rating

Comment = Annotated[str, msgspec.Meta(max_length=2_000)]
Number = Annotated[int, msgspec.Meta(ge=1, le=1_000)]


class FeedbackRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of ``POST /feedback``. One of ``task``, ``message`` and ``compare``; with ``compare`` a ``pick``, else one of
    ``rating`` and ``value``."""

    task: Name | None = None
    message: Name | None = None
    compare: Name | None = None
    rating: Literal[-1, 0, 1] | None = None
    value: Share | None = None
    pick: Number | Name | None = None
    comment: Comment | None = None
    client: Name | None = None


def feedback_routes(router: RouterPort) -> APIRouter:
    routes = APIRouter()

    @routes.post("/feedback")
    async def feedback(request: Request) -> Response:
        asked = typed(await read_json(request), FeedbackRequest)
        client = client_of(request.headers, asked.client)
        _refuse_vague(asked)
        if asked.compare is not None:
            assert asked.pick is not None
            name = asked.compare
            pick = Pick(client=client, compare=name, chosen=asked.pick, comment=asked.comment or None)
            rated = await router.pick(pick) if TASK_ID.fullmatch(name) else None
            if rated is None:
                raise UnknownTask(name, f"no comparison {name[:64]!r} with an answer {asked.pick!r} is known")
        else:
            name = asked.task or asked.message or ""
            own = asked.message is not None and _is_one_among_others(request)
            rated = (
                await router.rate(_rating(asked, client, own))
                if asked.task is None or TASK_ID.fullmatch(name)
                else None
            )
            if rated is None:
                told = None if asked.task is not None else f"no task was submitted as message {name[:64]!r}"
                raise UnknownTask(name, told)
        return Json(_stored(router, rated), 200, {"x-headrace-task": rated.task})

    return routes


def _refuse_vague(asked: FeedbackRequest) -> None:
    named = [name for name in ("task", "message", "compare") if getattr(asked, name) is not None]
    if len(named) != 1:
        raise BadRequest(f"send one of task, message and compare, not {' and '.join(named) or 'none'}", "task")
    if asked.compare is not None:
        if asked.pick is None:
            raise BadRequest("a comparison is rated by a pick: the number or the task of the answer preferred", "pick")
        if asked.rating is not None or asked.value is not None:
            raise BadRequest("a pick has no rating of its own; rate an answer alone by its task", "rating")
        return
    if (asked.rating is None) == (asked.value is None):
        raise BadRequest("send either rating (-1, 0 or 1) or value (from 0 to 1)", "rating")
    if asked.pick is not None:
        raise BadRequest("pick goes with compare", "pick")


def _is_one_among_others(request: Request) -> bool:
    """Keys tell callers apart, and this one's speaks for itself alone."""
    caller = caller_of(request)
    return caller.name is not None and not caller.speaks and not caller.admin


def _rating(asked: FeedbackRequest, client: str, own: bool) -> Rating:
    value = asked.value if asked.value is not None else THUMBS[asked.rating or 0]
    return Rating(
        client=client,
        value=float(value),
        task=asked.task,
        message=asked.message,
        comment=asked.comment or None,
        own=own,
    )


def _stored(router: RouterPort, rated: Rated) -> dict[str, Any]:
    rows = [
        {
            "id": event.id, "task": event.tasks[0], "model": event.model, "digest": event.digest,
            "quantisation": event.quantisation, "domain": event.domain, "worker": event.worker,
            "worker_name": worker_name(router, event.worker), "value": event.value, "peer": event.peer,
            "client": event.client, "comment": event.comment,
        }
        for event in rated.events
    ]  # fmt: skip
    told = {"again": rated.before, "supersedes": rated.supersedes, "withdrawn": rated.withdrawn}
    return {"task": rated.task, "stored": rows, **told}
