"""Limits by name, by default and in total; all or nothing."""

from __future__ import annotations

from services.router.dispatch.permits import Counts, Limit, Limits

LIMITS = Limits(model=Limit(1, {"big": 2}), client=Limit(total=2))


def test_a_names_own_limit_goes_before_the_default() -> None:
    counts = Counts(LIMITS, {"model:big": 1, "model:small": 1})
    assert counts.lacking(("model:big",)) is None
    assert counts.lacking(("model:big", "model:small")) == "model:small"


def test_a_total_counts_all_names_and_what_is_asked_for_together() -> None:
    assert Counts(LIMITS, {"client:a": 1}).lacking(("client:b",)) is None
    assert Counts(LIMITS, {"client:a": 1}).lacking(("client:b", "client:c")) == "client:c"
    assert Counts(LIMITS, {"client:a": 1, "client:b": 1}).lacking(("client:c",)) == "client:c"


def test_what_is_taken_in_a_plan_counts_and_the_log_is_not_touched() -> None:
    held: dict[str, int] = {}
    counts = Counts(LIMITS, held)
    counts.take(("model:small",))
    assert counts.lacking(("model:small",)) == "model:small"
    assert held == {}


def test_no_limit_is_no_limit() -> None:
    assert Counts(Limits(), {"backend:x": 10_000}).lacking(("backend:x",)) is None
