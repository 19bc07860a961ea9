"""One error, the form of whoever asks: by the path, for every status."""

from __future__ import annotations

import pytest

from services.router.http.problems import Problem, form_of, problem_of
from services.router.port import Unsupported


@pytest.mark.parametrize(
    ("status", "openai", "anthropic"),
    [
        (400, "invalid_request_error", "invalid_request_error"),
        (401, "authentication_error", "authentication_error"),
        (403, "permission_error", "permission_error"),
        (404, "invalid_request_error", "not_found_error"),
        (405, "invalid_request_error", "invalid_request_error"),
        (409, "invalid_request_error", "invalid_request_error"),
        (413, "invalid_request_error", "request_too_large"),
        (429, "rate_limit_error", "rate_limit_error"),
        (500, "server_error", "api_error"),
        (502, "server_error", "api_error"),
        (503, "server_error", "overloaded_error"),
        (504, "server_error", "timeout_error"),
    ],
)
def test_each_status_has_its_type(status: int, openai: str, anthropic: str) -> None:
    problem = Problem(status=status, code="c", message="m", field="f")
    assert form_of("/v1/chat/completions")(problem)["error"]["type"] == openai
    assert form_of("/v1/messages/count_tokens")(problem) == {
        "type": "error",
        "error": {"type": anthropic, "message": "m"},
    }
    assert form_of("/api/chat")(problem) == {"error": "m"}
    assert form_of("/route")(problem)["error"]["field"] == "f"


def test_who_could_do_it_is_told_in_our_own_form() -> None:
    problem = problem_of(Unsupported("a takes no tools", field="tools", able=("b",)))
    assert (problem.status, problem.code, problem.field, problem.nearest) == (400, "unsupported", "tools", ("b",))


@pytest.mark.parametrize(
    "problem",
    [
        Problem(status=400, code="rejected", message="HTTP 400: the request exceeds the available context size"),
        problem_of(Unsupported("the prompt has about 9000 tokens, a has 4096", field="messages")),
    ],
)
def test_agents_hear_that_a_conversation_is_too_long_in_the_words_that_they_know(problem: Problem) -> None:
    told = form_of("/v1/chat/completions")(problem)["error"]
    assert (told["code"], told["message"]) == ("context_length_exceeded", f"prompt is too long: {problem.message}")
    assert form_of("/v1/messages")(problem)["error"]["message"] == told["message"]
    assert form_of("/api/chat")(problem) == {"error": problem.message}
    assert form_of("/route")(problem)["error"]["code"] == problem.code


def test_other_refusals_keep_their_own_words() -> None:
    told = form_of("/v1/chat/completions")(Problem(status=400, code="rejected", message="bad tool"))["error"]
    assert (told["code"], told["message"]) == ("rejected", "bad tool")
