"""What went wrong, for whom, in which form? One value per error; ours, OpenAI's, Anthropic's and Ollama's forms (docs/http.md).

A client's mistake is never a 5xx.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from schemas.errors import BusError, CannotRun, HeadraceError, UnknownModel, UnknownRoute, UnknownRun, UnknownTarget
from schemas.overlong import is_overlong
from services.router.http.reading import BadRequest, Refused, TooSlow
from services.router.http.unpacking import UnknownEncoding
from services.router.port import Busy, TaskStatus, TooLarge, UnknownDomain, UnknownWorker, Unsupported
from services.router.rating import NotRated

AGAIN_S = 5.0
"""Retry-After where nobody computed one: a NATS server or a worker that restarts is back by then."""


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """An error as a client will see it. ``wanted`` is the model that nobody holds, as it was asked for."""

    status: int
    code: str
    message: str
    field: str | None = None
    nearest: tuple[str, ...] = ()
    retry_after_s: float | None = None
    numbers: dict[str, float] = {}
    wanted: str | None = None


class UnknownTask(HeadraceError, LookupError):
    """No such task, or one forgotten by everybody."""

    def __init__(self, task: str, told: str | None = None) -> None:
        super().__init__(told or f"no task {task[:64]!r} is known; GET /queue lists the present ones")


def problem_of(error: HeadraceError) -> Problem:
    """What a refusal looks like from outside."""
    message = str(error)
    match error:
        case BadRequest():
            return Problem(
                status=400, code="invalid_request", message=message, field=error.field, nearest=error.nearest
            )
        case Refused():
            code = "unauthorized" if error.status == 401 else "forbidden"
            return Problem(status=error.status, code=code, message=message)
        case TooLarge():
            return Problem(status=413, code="too_large", message=message)
        case UnknownEncoding():
            return Problem(status=415, code="unsupported_encoding", message=message, field="content-encoding")
        case TooSlow():
            return Problem(status=408, code="too_slow", message=message)
        case UnknownModel():
            return Problem(
                status=404,
                code="unknown_model",
                message=message,
                field="model",
                nearest=error.nearest,
                wanted=error.model,
            )
        case UnknownWorker():
            return Problem(status=404, code="unknown_worker", message=message, field="worker", nearest=error.nearest)
        case UnknownDomain():
            return Problem(status=404, code="unknown_domain", message=message, field="domain", nearest=error.nearest)
        case UnknownRoute():
            return Problem(status=404, code="unknown_route", message=message, field="route", nearest=error.nearest)
        case UnknownTarget():
            return Problem(status=404, code="unknown_target", message=message, field="route")
        case UnknownTask():
            return Problem(status=404, code="unknown_task", message=message)
        case UnknownRun():
            return Problem(status=404, code="unknown_run", message=message)
        case Unsupported():
            return Problem(status=400, code="unsupported", message=message, field=error.field, nearest=error.able)
        case CannotRun():
            return Problem(status=400, code="invalid_request", message=message, field=error.field)
        case NotRated():
            return Problem(status=409, code="not_rated", message=message, retry_after_s=error.retry_after_s)
        case Busy():
            return Problem(
                status=error.status,
                code="busy",
                message=message,
                retry_after_s=error.retry_after_s,
                numbers=error.numbers,
            )
        case BusError():
            return Problem(status=503, code="not_stored", message=message, retry_after_s=AGAIN_S)
        case _ if isinstance(error, ValueError):
            return Problem(status=400, code="invalid_request", message=message)
        case _:
            return Problem(status=503, code="unavailable", message=message, retry_after_s=AGAIN_S)


def http_problem(status: int, detail: str) -> Problem:
    """A path or method that does not exist."""
    code = {404: "not_found", 405: "method_not_allowed"}.get(status, "invalid_request")
    return Problem(status=status, code=code, message=detail)


INTERNAL = Problem(status=500, code="internal", message="the router failed at this request; its log says where")


NO_ANSWER = Problem(
    status=502, code="answer_lost", message="the task completed, but its answer could not be read; send it again"
)


def restarted(reason: str) -> Problem:
    """Of a task that was begun again after text of it was delivered, to clients that take none back."""
    return Problem(
        status=502,
        code="restarted",
        message=f"the answer broke off ({reason}) and was begun again; this protocol cannot take text back: send it again",
    )


def problem_of_end(status: TaskStatus) -> Problem | None:
    """None where the task completed; otherwise what to tell somebody who waited for its answer."""
    detail = status.detail or status.reason or "no reason was given"
    where = f"task {status.task}"
    match status.state:
        case "completed":
            return None
        case "cancelled":
            return Problem(status=409, code="cancelled", message=f"{where} was cancelled: {detail}")
        case "dead":
            return Problem(
                status=502, code="dead", message=f"{where} was given up after {status.attempt} attempts: {detail}"
            )
    failure = status.failure or "failed"
    message = f"{where} failed ({failure}): {detail}"
    match failure:
        case "rejected":
            return Problem(status=400, code="rejected", message=message)
        case "timeout":
            return Problem(status=504, code="timeout", message=message)
        case "busy" | "not_started":
            return Problem(status=503, code=failure, message=message, retry_after_s=AGAIN_S)
        case _:
            return Problem(status=502, code=failure, message=message)


def native_form(problem: Problem) -> dict[str, Any]:
    return {
        "error": {
            "code": problem.code,
            "message": problem.message,
            "field": problem.field,
            "nearest": problem.nearest,
            "retry_after_s": problem.retry_after_s,
            **({"numbers": problem.numbers} if problem.numbers else {}),
        }
    }


_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


def openai_form(problem: Problem) -> dict[str, Any]:
    kind = _OPENAI_TYPES.get(problem.status, "server_error" if problem.status >= 500 else "invalid_request_error")
    code = {"unknown_model": "model_not_found", "unauthorized": "invalid_api_key"}.get(problem.code, problem.code)
    code = "context_length_exceeded" if _is_overlong(problem) else code
    error: dict[str, Any] = {"message": _words(problem), "type": kind, "param": problem.field, "code": code}
    if problem.numbers:
        error["numbers"] = problem.numbers  # clients of OpenAI skip what they do not know
    return {"error": error}


def anthropic_form(problem: Problem) -> dict[str, Any]:
    kind = _ANTHROPIC_TYPES.get(problem.status, "api_error" if problem.status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": _words(problem)}}


def _is_overlong(problem: Problem) -> bool:
    return problem.code in ("unsupported", "rejected") and is_overlong(problem.message)


def _words(problem: Problem) -> str:
    """Agents shorten a conversation of which they hear Anthropic's words for it; few know those of each server."""
    return f"prompt is too long: {problem.message}" if _is_overlong(problem) else problem.message


_OLLAMA_STATUS = {409: 499, 429: 503}
"""A task that was cancelled and a full queue, in the numbers that Ollama has for them."""


def ollama_form(problem: Problem) -> dict[str, Any]:
    """A model that nobody holds in Ollama's own words: its clients look for them, and the command line then offers to pull."""
    message = problem.message
    if problem.code == "unknown_model" and (name := problem.wanted) is not None:
        near = f"; nearest: {', '.join(problem.nearest)}" if problem.nearest else ""
        message = f"model '{name}' not found{near}"
    return {"error": message, **({"numbers": problem.numbers} if problem.numbers else {})}


Form = Callable[[Problem], dict[str, Any]]
FORMS: tuple[tuple[str, Form], ...] = (
    ("/v1/messages", anthropic_form),
    ("/v1/", openai_form),
    ("/api/", ollama_form),
    ("/", native_form),
)
"""The form of a path is that of the first beginning that it has."""


def form_of(path: str) -> Form:
    return next((form for beginning, form in FORMS if path.startswith(beginning)), native_form)


def respond(problem: Problem, *, form: Form = native_form, headers: Mapping[str, str] | None = None) -> Response:
    status = _OLLAMA_STATUS.get(problem.status, problem.status) if form is ollama_form else problem.status
    all_headers = dict(headers or {})
    if problem.retry_after_s is not None:
        # HTTP knows whole seconds only, and 0 would invite a busy loop.
        all_headers["retry-after"] = str(max(1, math.ceil(problem.retry_after_s)))
    if problem.status == 408:
        all_headers["connection"] = "close"  # what else of the body may come is nobody's
    return Response(msgspec.json.encode(form(problem)), status, all_headers, media_type="application/json")


def respond_to(path: str, problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    """In the form that clients of ``path`` expect."""
    return respond(problem, form=form_of(path), headers=headers)
