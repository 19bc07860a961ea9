from __future__ import annotations

import pytest

from services.router.fleet import Fleet
from services.router.http.windows import problem_in
from services.router.port import TaskStatus
from support.fleets import fleet, model, worker

FLEET = fleet(
    worker("w-1", model("small", context=2048), model("large", context=32768), model("unsaid", context=None)),
    worker("w-2", model("both", context=2048), model("embedder", context=65536, capability="embedding")),
    worker("w-3", model("both", context=8192)),
)
TOO_LONG = "HTTP 400: the request exceeds the available context size (exceed_context_size_error)"


def said(of: str, detail: str) -> str:
    status = TaskStatus(task="t", state="failed", client="c", domain="d", model=of, failure="rejected", detail=detail)
    problem = problem_in(lambda: FLEET, status)
    assert problem is not None and problem.status == 400
    return problem.message


@pytest.mark.parametrize(
    "detail", [TOO_LONG, "the input length exceeds the context length", "maximum context length is 2048 tokens"]
)
def test_a_prompt_that_was_too_long_is_told_with_the_models_that_have_more_room(detail: str) -> None:
    assert said("small", detail).endswith("; these have longer windows: large (32768 tokens), both (8192 tokens)")
    assert said("both", detail).endswith("; these have longer windows: large (32768 tokens), both (8192 tokens)")


def test_where_nobody_is_known_to_have_more_that_is_said_and_nothing_of_an_unknown_window() -> None:
    assert said("large", TOO_LONG).endswith("; no model in the fleet is known to have a longer window")
    assert said("unsaid", TOO_LONG).endswith(TOO_LONG)


def test_what_was_refused_for_something_else_is_left_as_it_was() -> None:
    assert said("small", "a message that cannot be read") == "task t failed (rejected): a message that cannot be read"
    assert problem_in(Fleet, TaskStatus(task="t", state="completed", client="c", domain="d")) is None
