from __future__ import annotations

from typing import get_args

import pytest

from schemas.errors import BusError, HeadraceError, InvalidToken, UnknownModel
from schemas.events import FailureClass
from services.router.http.problems import openai_form, problem_of, problem_of_end, respond
from services.router.http.reading import BadRequest
from services.router.port import Busy, State, TaskStatus, TooLarge


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (BadRequest("x", "f"), 400, "invalid_request"),
        (InvalidToken("x"), 400, "invalid_request"),
        (UnknownModel("x"), 404, "unknown_model"),
        (TooLarge("x"), 413, "too_large"),
        (Busy("x", retry_after_s=1), 429, "busy"),
        (Busy("x", retry_after_s=1, status=503), 503, "busy"),
        (BusError("x"), 503, "not_stored"),
        (HeadraceError("x"), 503, "unavailable"),
    ],
)
def test_each_refusal_has_its_status_and_code(error: HeadraceError, status: int, code: str) -> None:
    problem = problem_of(error)
    assert (problem.status, problem.code) == (status, code)
    assert (problem.status in (429, 503)) == (problem.retry_after_s is not None)


def test_only_a_completed_task_is_no_problem() -> None:
    for state in set(get_args(State)) - {"waiting", "released", "running"}:
        problem = problem_of_end(TaskStatus(task="t", state=state))
        assert (problem is None) == (state == "completed")


@pytest.mark.parametrize("failure", get_args(FailureClass))
def test_every_failure_class_has_words_and_a_status(failure: FailureClass) -> None:
    problem = problem_of_end(TaskStatus(task="t", state="failed", failure=failure, detail="why"))
    assert problem is not None
    assert problem.status == {"rejected": 400, "timeout": 504, "busy": 503, "not_started": 503}.get(failure, 502)
    assert failure in problem.message
    assert "why" in problem.message
    assert openai_form(problem)["error"]["type"] == (
        "invalid_request_error" if problem.status == 400 else "server_error"
    )


@pytest.mark.parametrize(("seconds", "header"), [(0.0, "1"), (0.2, "1"), (1.0, "1"), (1.01, "2"), (90.0, "90")])
def test_retry_after_is_in_whole_seconds_and_never_zero(seconds: float, header: str) -> None:
    response = respond(problem_of(Busy("x", retry_after_s=seconds)), form=openai_form)
    assert response.headers["retry-after"] == header
