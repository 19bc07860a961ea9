"""What is new starts from its parent's estimate, with a wide uncertainty, and is never worse off for having few samples (S5)."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, strategies as st

from schemas.statistics import Cell, Effective, Statistics, effective, fold
from support.samples import GB, judged, speed

NOW = 10**13
tps = st.floats(2.0, 200.0)
some = st.integers(1, 60)


def ran(model: str, worker: str, rate: float, n: int, *, gb: int = 5, domain: str = "code") -> Cell:
    us = round(100 / rate * 1e6)
    given = {"model": model, "worker": worker, "domain": domain, "model_bytes": gb * GB, "digest": model}
    return fold(speed(seq, decode_us=us, **given) for seq in range(1, n + 1))


def was_judged(model: str, value: float, n: int, domain: str = "code", worker: str | None = None) -> Cell:
    return fold(
        judged(seq, value, model=model, domain=domain, worker=worker, source="check") for seq in range(1, n + 1)
    )


def expect(stats: Statistics, model: str, worker: str, *, gb: int = 5, domain: str = "code") -> Effective:
    return effective(stats, model, domain, worker, model_bytes=gb * GB, now_us=NOW)


def rate(known: Effective) -> float:
    assert known.decode.value is not None
    return known.decode.value


def quality(stats: Statistics, model: str) -> float:
    value = expect(stats, model, "desk").quality.value
    assert value is not None
    return value


@given(here=tps, elsewhere=tps, n=some, gb=st.integers(1, 80))
def test_a_new_model_has_the_machines_bandwidth_whatever_its_size(
    here: float, elsewhere: float, n: int, gb: int
) -> None:
    stats = Statistics([ran("qwen3", "desk", here, n), ran("qwen3", "lap", elsewhere, n)])
    small, large = expect(stats, "new", "desk", gb=1), expect(stats, "new", "desk", gb=gb)
    assert small.decode.level == large.decode.level == "worker"
    assert rate(small) == pytest.approx(rate(large) * gb, rel=1e-6)
    between = sorted((5 * here, 5 * elsewhere, 120.0))
    assert between[0] * 0.999 <= rate(small) <= between[-1] * 1.001
    if n >= 5:
        assert rate(small) == pytest.approx(5 * here, rel=0.35)


@given(elsewhere=tps, n=some)
def test_a_new_machine_starts_from_the_models_other_machines_and_says_how_little_that_is(
    elsewhere: float, n: int
) -> None:
    stats = Statistics([ran("qwen3", "lap", elsewhere, n)])
    known, old = expect(stats, "qwen3", "new"), expect(stats, "qwen3", "lap")
    assert (known.decode.level, known.uncertainty) == ("model", 1.0)
    assert known.uncertainty > 1.5 * old.uncertainty
    between = sorted((elsewhere, 120 / 5))
    assert between[0] * 0.999 <= rate(known) <= between[1] * 1.001


@given(here=tps, elsewhere=tps, known=some, n=some)
def test_samples_that_are_as_expected_change_the_certainty_alone(
    here: float, elsewhere: float, known: int, n: int
) -> None:
    others = [ran("qwen3", "desk", here, known), ran("qwen3", "lap", elsewhere, known)]
    before = expect(Statistics(others), "new", "desk")
    after = expect(Statistics([*others, ran("new", "desk", rate(before), n)]), "new", "desk")
    assert rate(after) == pytest.approx(rate(before), rel=0.1)
    assert after.uncertainty < before.uncertainty


@given(fast=tps, slow=tps, few=st.integers(1, 5), many=st.integers(20, 60))
def test_a_faster_machine_with_few_samples_is_not_put_behind_a_slow_one_with_many(
    fast: float, slow: float, few: int, many: int
) -> None:
    assume(fast > 2.0 * slow)
    stats = Statistics([ran("qwen3", "desk", fast, few), ran("qwen3", "lap", slow, many)])
    assert rate(expect(stats, "qwen3", "desk")) > rate(expect(stats, "qwen3", "lap"))


@given(own=st.floats(0, 1), others=st.floats(0, 1), n=some)
def test_a_new_model_is_as_good_as_its_family_until_it_is_judged(own: float, others: float, n: int) -> None:
    stats = Statistics([was_judged("qwen2.5:7b", own, n), was_judged("llama3.2:3b", others, n)])
    relative, stranger = expect(stats, "qwen3:8b", "desk").quality, expect(stats, "solar:10.7b", "desk").quality
    assert (relative.level, relative.n) == ("family", n)
    assert (stranger.level, stranger.n) == ("prior", 0)
    assert relative.value is not None and stranger.value is not None
    word = weight_of(n) / (weight_of(n) + 6)
    fleet = ((own + others) * word + 0.5) / (2 * word + 1)
    assert stranger.value == pytest.approx(fleet, abs=0.01)
    low, high = sorted((own, stranger.value))
    assert low - 0.01 <= relative.value <= high + 0.01


@given(own=st.floats(0, 1), others=st.floats(0, 1), known=some, n=some)
def test_judgements_that_are_as_expected_leave_quality_where_it_was(
    own: float, others: float, known: int, n: int
) -> None:
    told = [was_judged("qwen2.5:7b", own, known), was_judged("llama3.2:3b", others, known)]
    before = quality(Statistics(told), "qwen3:8b")
    after = quality(Statistics([*told, was_judged("qwen3:8b", before, n, worker="desk")]), "qwen3:8b")
    assert after == pytest.approx(before, abs=0.05)


judgements = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 40)), min_size=1, max_size=4)


@given(told=judgements)
def test_a_model_that_nobody_judged_is_between_one_half_and_those_that_were(told: list[tuple[float, int]]) -> None:
    """Unknown is never good: it must not pass the best model of the domain by inheriting from it."""
    models = ("qwen3:8b", "qwen2.5:7b", "llama3.2:3b", "phi4")
    stats = Statistics(was_judged(model, value, n) for model, (value, n) in zip(models, told, strict=False))
    known = [quality(stats, model) for model in models[: len(told)]] + [0.5]
    assert min(known) - 1e-6 <= quality(stats, "solar:10.7b") <= max(known) + 1e-6


def weight_of(n: int) -> float:
    """Of so many samples a second apart: younger ones weigh more."""
    return was_judged("any", 1.0, n).quality.w / 1e6 / (1 << 30)
