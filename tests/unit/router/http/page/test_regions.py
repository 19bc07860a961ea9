"""Only what changed is sent, what trembles seldom, and applying the steps gives the whole."""

from __future__ import annotations

from typing import Any

from hypothesis import given, strategies as st

from services.router.http.page.regions import NEAR, TOLD_AT_ONCE_MOST, TOLD_EVERY_S, Region
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
    for begun in range(0, many, TOLD_AT_ONCE_MOST):
        rows = region.step(later, TOLD_EVERY_S + begun)["rows"]
        assert list(rows) == [f"r{n}" for n in range(begun, begun + TOLD_AT_ONCE_MOST)], "nobody is passed over"
    assert region.step(later, 1_000.0) == {}


def test_the_first_rows_change_at_once_and_those_far_back_in_their_turn() -> None:
    region, many = Region(str), NEAR + 2 * TOLD_AT_ONCE_MOST
    region.step([row(f"r{n}") for n in range(many)], 0.0)
    changed = [row(f"r{n}", "b") for n in range(many)]
    assert list(region.step(changed, 1.0)["rows"]) == [f"r{n}" for n in range(NEAR)]
    assert len(region.step(changed, TOLD_EVERY_S)["rows"]) == TOLD_AT_ONCE_MOST
    assert len(region.step(changed, TOLD_EVERY_S)["rows"]) == TOLD_AT_ONCE_MOST
    assert region.step(changed, 1_000.0) == {} and region.html == "".join(f"r{n}b0" for n in range(many))


def test_one_that_leaves_or_comes_is_one_word_and_one_that_overtakes_needs_the_order() -> None:
    region = Region(str)
    region.step([row("x"), row("y"), row("z")], 0.0)
    assert region.step([row("y"), row("z"), row("new")], 1.0) == {"gone": ["x"], "rows": {"new": "newa0"}}
    assert region.step([row("y"), row("p"), row("q"), row("z"), row("new")], 1.0) == {
        "rows": {"p": "pa0", "q": "qa0"}, "before": {"p": "z", "q": "z"}
    }  # fmt: skip
    assert region.step([row("z"), row("y"), row("p"), row("q"), row("new")], 1.0) == {
        "order": ["z", "y", "p", "q", "new"]
    }


def applied(shown: dict[str, str], step: dict[str, Any]) -> dict[str, str]:
    """As page.js does it."""
    keys = [key for key in shown if key not in step.get("gone", ())]
    for key in step.get("rows", {}):
        if key not in keys:
            before = step.get("before", {}).get(key)
            keys.insert(keys.index(before) if before is not None else len(keys), key)
    keys = step.get("order", keys)
    return {key: step.get("rows", {}).get(key, shown.get(key)) for key in keys}


@given(st.lists(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("xy")), unique_by=lambda r: r[0])))
def test_the_steps_lead_to_what_is_there(moments: list[list[tuple[str, str]]]) -> None:
    region, shown = Region(str), dict[str, str]()
    for now, rows in enumerate(moments):
        shown = applied(shown, region.step([row(name, state) for name, state in rows], float(now)))
        assert list(shown.items()) == [(name, f"{name}{state}0") for name, state in rows]
        assert region.whole() == {"order": list(shown), "rows": shown}
