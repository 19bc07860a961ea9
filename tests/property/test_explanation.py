"""What is shown of a number is what made it: it ends at the same bits, and each line follows from the one before by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from schemas.explanation import FieldParts, explain
from schemas.pools import Statistics
from schemas.samples import Sample
from schemas.statistics import effective, fold, key_of
from support.samples import GB, sample_log

WALKED = ("decode", "prefill", "load", "output_tokens", "quality", "use_known")
LEARNED = ("slowdown", "others_weight")


def statistics(log: list[Sample]) -> Statistics:
    cells: dict[object, list[Sample]] = {}
    for sample in log:
        cells.setdefault(key_of(sample), []).append(sample)
    return Statistics(fold(samples) for samples in cells.values())


pairs = st.tuples(
    st.sampled_from(("qwen3", "llama", "new")),
    st.sampled_from(("code", "maths", "other")),
    st.sampled_from(("desk", "lap", "new")),
    st.none() | st.integers(1, 2**40),
)


@given(log=sample_log(40), asked=pairs, now_us=st.integers(0, 10**15))
def test_an_explanation_ends_at_the_very_number_that_the_planner_uses(
    log: list[Sample], asked: tuple[str, str, str, int | None], now_us: int
) -> None:
    *pair, size = asked
    stats = statistics(log)
    known = effective(stats, *pair, model_bytes=size, now_us=now_us)
    told = explain(stats, *pair, model_bytes=size, now_us=now_us)
    for name in (*WALKED, *LEARNED):
        assert told.fields[name].measure == getattr(known, name)
    for name in WALKED:
        assert told.fields[name].levels[-1].result == getattr(known, name).value
    for name in LEARNED:
        assert round(100 * told.fields[name].levels[-1].result) == round(100 * getattr(known, name).value)
    assert told.confidence.deviation == known.uncertainty


def by_hand(field: FieldParts) -> float:
    """From the printed numbers alone."""
    value = field.prior
    log, exp = (math.log, math.exp) if field.mean == "geometric" else (float, float)
    for level in field.levels:
        if level.value is not None:
            total = level.weight * log(level.value) + level.parent_worth * log(value)
            value = exp(total / (level.weight + level.parent_worth))
    return value


@given(log=sample_log(40), asked=pairs)
def test_each_line_follows_from_the_one_before_by_hand(
    log: list[Sample], asked: tuple[str, str, str, int | None]
) -> None:
    *pair, size = asked
    told = explain(statistics(log), *pair, model_bytes=size, now_us=10**15)
    for name, field in told.fields.items():
        if field.prior > 0 and all(level.value is None or level.value > 0 for level in field.levels):
            assert by_hand(field) == pytest.approx(field.levels[-1].result, rel=1e-4), name


@given(log=sample_log(40))
def test_a_cells_own_rate_is_what_was_observed_times_what_was_shared(log: list[Sample]) -> None:
    told = explain(statistics(log), "qwen3", "code", "desk", model_bytes=5 * GB, now_us=10**15)
    for name, ran in told.as_ran.items():
        assert ran.observed * ran.streams * ran.others == pytest.approx(ran.alone, rel=1e-9)
        assert told.fields[name].levels[-1].value == pytest.approx(ran.alone, rel=1e-5)
