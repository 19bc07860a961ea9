"""Two decisions compared: every kind of change has its words. The stories are in tests/story/test_s6_parts.py."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.events import TaskRouted
from services.router.comparison import compare
from services.router.fleet import WorkerView
from support.choosing import route
from support.fleets import cell, model, worker


def decided(desk: WorkerView | None = None, *, prompt_tokens: int = 200, **known: Any) -> TaskRouted:
    fields: dict[str, Any] = {"n": 50, "decode": 60, "prefill": 2000, "load_s": 3.0, "output": 300, "quality": 0.8}
    cells = [cell("m", "code", "desk", **{**fields, **known}), cell("m", "code", "laptop", n=50, decode=9)]
    views = [desk or worker("desk", "m"), worker("laptop", "m")]
    return route(views, cells, prompt_tokens=prompt_tokens)


BEFORE = decided()


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (decided(decode=30), "decode 60 → 30 tokens/s (+"),
        (decided(prefill=500), "prefill 2000 → 500 tokens/s (+"),
        (decided(output=900), "expected length 300 → 854 tokens (+"),
        (decided(quality=0.4), "quality 80 → 40 of 100 (+"),
        (decided(prompt_tokens=2000), "prompt 200 → 2000 tokens (+"),
        (decided(worker("desk", "m", wait_s=7.0)), "wait 0.00 s → 7.00 s (+7.00 s)"),
        (decided(worker("desk", "m", wait_s=None)), "wait 0.00 s → unknown (+3600.00 s)"),
        (decided(worker("desk", "m", resident=frozenset())), "loaded → not loaded (+"),
        (decided(worker("desk", "m", resident=None)), "loaded → perhaps not loaded (+"),
        (decided(worker("desk", "m", others_use=0.5)), "others' use 0 % → 50 % (+"),
        (decided(worker("desk", "m", others_use=None)), "others' use 0 % → unknown (+"),
        (decided(worker("desk", "m", fresh=False)), "its load is unknown now, so known ones come first"),
    ],
)
def test_each_input_that_changed_is_named_with_both_values(after: TaskRouted, words: str) -> None:
    line = next(line for line in compare(BEFORE, after) if line.startswith("m on desk costs "))
    assert words in line


def test_a_load_that_takes_longer_is_named_where_it_counts() -> None:
    cold = worker("desk", "m", resident=frozenset())
    lines = compare(decided(cold), decided(cold, load_s=9.0))
    assert any("load 3 → " in line for line in lines)


def test_somebody_who_came_and_somebody_who_went_are_told() -> None:
    gone = decided(worker("desk", "m", alive=False))
    assert "m on desk is out: silent: was not heard lately." in compare(BEFORE, gone)
    back = compare(gone, BEFORE)
    assert any(line.startswith("m on desk is in, at a cost of") for line in back)


def test_nobody_before_or_after_is_told() -> None:
    nobody = route([worker("desk", model("m", capability="gpu_inference"))], [])
    assert compare(nobody, BEFORE)[0] == "Chosen before: nobody; now: m on desk."


def test_equals_drawn_by_lot_are_said_to_be() -> None:
    twins = [worker("a", "m"), worker("b", "m")]
    results = {route(twins, [], seed=seed).choice.worker: route(twins, [], seed=seed) for seed in range(20)}  # type: ignore[union-attr]
    line = compare(results["a"], results["b"])[0]
    assert line.endswith("a load became known or unknown, or equals were drawn by lot.")


def test_what_would_be_is_told_as_such_from_now_to_then() -> None:
    lines = compare(BEFORE, decided(decode=1), what_if=True)
    assert lines[0].startswith(
        "The choice would go from m on desk to m on laptop. What would do it: m on desk, decode 60 → 1"
    )
    assert any(line.startswith("m on desk would cost ") and " more: decode 60 → 1" in line for line in lines)
    assert compare(BEFORE, BEFORE, what_if=True) == ["The choice would be the same, m on desk."]
