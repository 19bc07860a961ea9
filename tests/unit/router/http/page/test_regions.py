"""Only what changed is sent, what trembles seldom, and applying the steps gives the whole."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from services.router.http.page.regions import TOLD_AT_ONCE_MOST, TOLD_EVERY_S, Region
from services.router.http.page.rows import Row


def row(name: str, state: str = "a", told: int = 0) -> Row:
    return Row(id=name, known_by=(state,), tells=(told,), view=f"{name}{state}{told}")


def test_what_did_not_change_is_not_sent() -> None:
    region = Region(str)
    assert region.step([row("x"), row("y")], 0.0) == {"rows": {"x": "xa0", "y": "ya0"}}
    assert region.step([row("x"), row("y")], 1.0) == {}
    assert region.step([row("x", "b"), row("y")], 1.0) == {"rows": {"x": "xb0"}}
    assert region.html == "xb0ya0"


def test_seconds_alone_are_told_now_and_then_and_never_for_all_at_once() -> None:
    region, many = Region(str), 3 * TOLD_AT_ONCE_MOST
    region.step([row(f"r{n}") for n in range(many)], 0.0)
    later = [row(f"r{n}", told=1) for n in range(many)]
    assert region.step(later, TOLD_EVERY_S - 0.1) == {}
    assert len(region.step(later, TOLD_EVERY_S)["rows"]) == TOLD_AT_ONCE_MOST
    assert next(iter(region.step(later, TOLD_EVERY_S)["rows"])) == f"r{TOLD_AT_ONCE_MOST}"


def test_one_that_leaves_is_one_word_and_one_that_overtakes_needs_the_order() -> None:
    region = Region(str)
    region.step([row("x"), row("y"), row("z")], 0.0)
    assert region.step([row("y"), row("z"), row("new")], 1.0) == {"gone": ["x"], "rows": {"new": "newa0"}}
    assert region.step([row("z"), row("y"), row("new")], 1.0) == {"order": ["z", "y", "new"]}


def applied(shown: dict[str, str], step: dict[str, Any]) -> dict[str, str]:
    """As page.js does it."""
    after = {key: html for key, html in shown.items() if key not in step.get("gone", ())}
    after |= step.get("rows", {})
    order = step.get("order")
    return after if order is None else {key: after[key] for key in order}


@given(st.lists(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("xy")), unique_by=lambda r: r[0])))
def test_the_steps_lead_to_what_is_there(moments: list[list[tuple[str, str]]]) -> None:
    region, shown = Region(str), dict[str, str]()
    for now, rows in enumerate(moments):
        shown = applied(shown, region.step([row(name, state) for name, state in rows], float(now)))
        assert list(shown.items()) == [(name, f"{name}{state}0") for name, state in rows]
        assert region.whole() == {"order": list(shown), "rows": shown}
