"""Effective values: which level answers, what they are, and that no unknown looks measured or good."""

from __future__ import annotations

import math

import pytest

from schemas.events import Measure
from schemas.statistics import Cell, Effective, Statistics, effective, fold, pull_priority, service_seconds
from support.samples import DAY_US, GB, cell, judged, speed

NOW = 10_000 * 1_000_000


def expect(
    stats: Statistics, worker: str = "desk", model: str = "qwen3", domain: str = "code", gb: int | None = 5
) -> Effective:
    return effective(stats, model, domain, worker, model_bytes=gb * GB if gb else None, now_us=NOW)


def many(count: int, **fields: object) -> Cell:
    return fold(speed(seq, **fields) for seq in range(1, count + 1))


def test_knowing_nothing_gives_the_prior_at_the_models_size_and_says_so() -> None:
    known = expect(Statistics())
    assert known.decode.value == pytest.approx(120 / 5)
    assert known.prefill.value == pytest.approx(3000 / 5)
    assert known.load.value == pytest.approx(5.0)
    assert known.output_tokens.value == 300
    assert known.quality.value == 0.5
    assert {known.decode.level, known.quality.level, known.output_tokens.level} == {"prior"}
    assert (known.decode.n, known.decode.age_s, known.uncertainty) == (0, None, 1.0)


def test_a_measured_cell_answers_with_its_own_rate_its_count_and_its_age() -> None:
    known = expect(Statistics([many(40)]))
    assert known.decode.value == pytest.approx(50, rel=0.05)
    assert known.prefill.value == pytest.approx(1000, rel=0.05)
    assert (known.decode.level, known.decode.n, known.decode.age_s) == ("cell", 40, (NOW - 40_000_000) / 1e6)
    assert known.uncertainty < 0.15


def test_each_field_falls_back_by_itself() -> None:
    """S4: a row with speed but no quality yet keeps its speed, and its quality comes from the model."""
    stats = Statistics([many(40), fold([judged(50, 0.9, worker=None, domain="maths")])])
    known = expect(stats)
    assert known.decode.level == "cell"
    assert (known.quality.level, known.quality.n) == ("model", 1)
    assert known.quality.value is not None and known.quality.value > 0.5
    assert known.load.level == "prior"


def test_speed_falls_back_on_the_machine_before_the_model() -> None:
    """S1: what a slow laptop did with a model says little about the model on another machine."""
    stats = Statistics(
        [
            many(40, worker="lap", decode_us=20_000_000),
            many(40, model="llama", model_bytes=2 * GB, decode_us=1_000_000),
        ]
    )
    on_desk = expect(stats)
    assert on_desk.decode.level == "worker"
    assert on_desk.decode.value == pytest.approx(100 * 2 / 5, rel=0.1)
    assert expect(stats, worker="lap").decode.value == pytest.approx(5, rel=0.1)


def test_another_domain_of_the_same_pair_is_the_next_best_source() -> None:
    known = expect(Statistics([many(40)]), domain="maths")
    assert (known.decode.level, known.decode.n) == ("model_worker", 40)
    assert known.decode.value == pytest.approx(50, rel=0.06)


def test_a_new_machine_starts_from_what_others_do_with_the_model() -> None:
    known = expect(Statistics([many(40)]), worker="new")
    assert known.decode.level == "model"
    assert known.decode.value == pytest.approx(50, rel=0.05)
    assert known.uncertainty == 1.0


def test_an_unknown_size_is_taken_from_the_model_elsewhere_and_else_nothing_is_scaled() -> None:
    stats = Statistics([many(40)])
    assert expect(stats, gb=None).decode == expect(stats).decode
    sizeless = expect(Statistics([many(40, model_bytes=None)]), model="llama", gb=None)
    assert sizeless.decode.level == "worker"
    assert sizeless.decode.value == pytest.approx(50, rel=0.05)


def test_one_judgement_moves_quality_by_a_seventh_of_the_way() -> None:
    """The pseudo-count of 6 that fitted real data best (ROUTING.md, B2), counted once and not once per level."""
    known = expect(Statistics([cell(judged(1, 1.0))]))
    assert known.quality.value == pytest.approx(0.5 + 0.5 / 7)
    assert (known.quality.level, known.quality.n) == ("cell", 1)


def test_a_warm_start_teaches_nothing_about_loading() -> None:
    """Case 28: only a cold start is a load sample, and it is no sample of anything else's speed."""
    warm = [speed(n, load_us=50_000) for n in range(1, 11)]
    cold = speed(11, resident=False, load_us=20_000_000)
    known = expect(Statistics([cell(*warm, cold)]))
    assert known.load.n == 1
    assert known.load.value is not None and known.load.value > 10
    assert known.decode.value == pytest.approx(expect(Statistics([cell(*warm, speed(11))])).decode.value)


def test_a_benchs_short_answers_teach_no_length() -> None:
    stats = Statistics([many(30, task_kind="bench", output_tok=64)])
    assert expect(stats).output_tokens == Measure(value=300.0, level="prior", n=0)
    assert expect(Statistics([many(30)])).output_tokens.value == pytest.approx(100, rel=0.2)


def test_a_game_on_the_gpu_does_not_make_the_machine_slow_for_ever() -> None:
    played = expect(Statistics([many(40, others_u=500_000, decode_us=4_000_000)]))
    assert played.decode.value == pytest.approx(50, rel=0.05)


def test_a_samples_count_leaves_the_mean_of_equal_samples_alone() -> None:
    """S5: evidence thickens the certainty, never the score."""
    few, lots = expect(Statistics([many(25)])), expect(Statistics([many(400)]))
    assert few.decode.value == pytest.approx(lots.decode.value, rel=0.02)
    assert few.uncertainty >= lots.uncertainty


def test_certainty_fades_with_time_and_the_value_does_not() -> None:
    stats = Statistics([many(40)])
    later = effective(stats, "qwen3", "code", "desk", model_bytes=5 * GB, now_us=NOW + 60 * DAY_US)
    assert later.decode.value == expect(stats).decode.value
    assert later.uncertainty > expect(stats).uncertainty


def test_a_changed_digest_restarts_the_cell() -> None:
    old = [speed(n, decode_us=10_000_000) for n in range(1, 41)]
    new = cell(*old, speed(41, digest="d2"))
    assert (new.digest, new.decode.n, new.ok_n, new.last_seq) == ("d2", 1, 1, 41)


def test_a_late_judgement_of_the_old_digest_resets_nothing() -> None:
    both = cell(speed(1), speed(2, digest="d2"), judged(3, 0.2, digest="d1"), judged(4, 0.9, digest="d2"))
    assert (both.digest, both.decode.n, both.quality.n) == ("d2", 1, 1)
    assert both.quality.p50 == 900_000


def test_younger_samples_weigh_more() -> None:
    changed = [speed(n, decode_us=2_000_000) for n in range(1, 41)] + [
        speed(n, decode_us=1_000_000) for n in range(41, 81)
    ]
    value = expect(Statistics([cell(*changed)])).decode.value
    assert value is not None and 85 < value < 100


def test_an_older_state_of_a_cell_is_passed_over() -> None:
    stats = Statistics([many(40)])
    stats.put(many(3))
    assert expect(stats).decode.n == 40
    assert stats.position == 40


def test_pull_priority_takes_three_steps_for_each_doubling() -> None:
    assert [pull_priority(s, 2.0) for s in (2.0, 1.0, 4.0, 14.6, 1000.0)] == [0, 0, 3, 9, 9]
    assert pull_priority(0.0, 0.0) == 0


def test_a_model_that_may_not_be_resident_pays_its_load() -> None:
    known = expect(Statistics([many(40)]))
    warm, maybe = service_seconds(known, resident=True), service_seconds(known, resident=None)
    assert known.load.value is not None
    assert maybe - warm == pytest.approx(known.load.value)
    assert service_seconds(known, resident=False) == maybe
    assert math.isfinite(warm)
