from __future__ import annotations

from typing import Any

from rich.console import Console, RenderableType

from services.cli import decisions, numbers
from support.http_examples import example


def text_of(renderable: RenderableType) -> str:
    console = Console(width=200, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def test_a_preview_names_the_choice_its_parts_and_the_removals() -> None:
    words = text_of(decisions.preview(example("`GET /route/preview`")))
    assert "qwen3 on desktop: 4.2 s predicted, the least" in words
    assert "96.4" in words
    assert "~0.70" in words
    assert "~ borrowed" in words
    assert "✗ llava on laptop: capability: needs gpu_inference, has cpu_inference" in words


def test_a_borrowed_number_is_marked_and_an_unknown_one_says_so() -> None:
    borrowed = {"value": 58.1, "level": "model", "n": 12, "age_s": 3.0}
    assert decisions.measure(borrowed, numbers.plain) == "~58.1"
    assert decisions.measure({**borrowed, "level": "cell"}, numbers.plain) == "58.1"
    assert decisions.measure({**borrowed, "value": None}, numbers.plain) == "unknown"


def test_a_preview_without_a_choice_says_that_nobody_could_answer() -> None:
    body: dict[str, Any] = example("`GET /route/preview`") | {"choice": None, "candidates": []}
    assert "Nobody could answer this now." in text_of(decisions.preview(body))


def test_an_explanation_shows_the_routers_words_and_its_candidates_by_name() -> None:
    body = example("`GET /explain/{id}`")
    body["decision"]["candidates"] = [dict(example("`GET /route/preview`")["candidates"][0])]
    del body["decision"]["candidates"][0]["worker_name"]
    words = text_of(decisions.explanation(body, names={"w-7f3a": "desktop"}))
    assert "• qwen3 on desktop was chosen: 3.2 s predicted, …" in words
    assert "w-7f3a" not in words


def test_events_are_a_timeline_on_request() -> None:
    body = example("`GET /explain/{id}`")
    body["events"].append(
        {"type": "attempt.failed", "at": 1764437002.0, "by": "w-7f3a", "failure": "stall", "attempt": 1}
    )
    words = text_of(decisions.explanation(body, with_events=True))
    assert "attempt.failed" in words
    assert "attempt 1, failure stall" in words
