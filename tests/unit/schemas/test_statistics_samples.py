"""What an event teaches, and what it does not."""

from __future__ import annotations

import pytest

from schemas.errors import InvalidEvent
from schemas.events import AttemptFailed, QualityJudged, TaskCompleted, TaskSubmitted, Times, Tokens
from schemas.samples import sample_of
from support.builders import build


def test_a_completion_is_a_row_of_integers() -> None:
    event = build(
        TaskCompleted,
        tokens=Tokens(prompt=120, cached=20, output=50, thinking=10),
        times=Times(queue_s=0.25, prefill_s=0.5, decode_s=2.0, first_token_s=0.75, total_s=2.75),
        others_use=0.125,
    )
    sample = sample_of(event, 7, 1_000)
    assert sample is not None
    assert (sample.seq, sample.at_us, sample.kind, sample.worker) == (7, 1_000, "speed", event.worker)
    assert (sample.prefill_tok, sample.prefill_us) == (100, 500_000)
    assert (sample.decode_tok, sample.decode_us, sample.output_tok) == (50, 2_000_000, 50)
    assert (sample.queue_us, sample.first_token_us, sample.total_us, sample.others_u) == (
        250_000,
        750_000,
        2_750_000,
        125_000,
    )


def test_what_was_not_measured_is_missing_and_not_zero() -> None:
    sample = sample_of(build(TaskCompleted, tokens=Tokens(), times=Times(), others_use=None, resident=None), 1, 1)
    assert sample is not None
    measured = (sample.prefill_tok, sample.prefill_us, sample.decode_tok, sample.decode_us, sample.output_tok)
    assert measured == (None,) * 5
    assert (sample.queue_us, sample.load_us, sample.total_us, sample.others_u, sample.resident) == (None,) * 5


@pytest.mark.parametrize(
    ("tokens", "seconds"), [(0, 1.0), (5, 0.0), (None, 1.0), (5, None), (5, -1.0), (1 << 40, 1.0), (5, 1e30)]
)
def test_half_a_rate_or_an_impossible_one_is_no_rate(tokens: int | None, seconds: float | None) -> None:
    event = build(TaskCompleted, tokens=Tokens(output=tokens), times=Times(decode_s=seconds))
    sample = sample_of(event, 1, 1)
    assert sample is not None
    assert (sample.decode_tok, sample.decode_us) == (None, None)


def test_an_empty_answer_is_no_success_and_keeps_the_speed_of_what_ran() -> None:
    event = build(TaskCompleted, outcome="empty", tokens=Tokens(prompt=9, output=0), times=Times(prefill_s=1.0))
    sample = sample_of(event, 1, 1)
    assert sample is not None
    assert sample.ok is False
    assert sample.prefill_us == 1_000_000
    assert sample.decode_tok is None


def test_a_substituted_models_speed_is_nobodys_here() -> None:
    sample = sample_of(build(TaskCompleted, outcome="substituted"), 1, 1)
    assert sample is not None
    assert sample.ok is False
    assert (sample.decode_us, sample.total_us, sample.output_tok) == (None, None, None)


@pytest.mark.parametrize(
    ("source", "weight_u"), [("judge", 1_000_000), ("check", 1_000_000), ("thumb", 300_000), ("signal", 100_000)]
)
def test_a_judgement_weighs_by_its_source(source: str, weight_u: int) -> None:
    sample = sample_of(build(QualityJudged, source=source, value=0.75, weight=1.0), 1, 1)
    assert sample is not None
    assert (sample.kind, sample.quality_u, sample.quality_w_u) == ("quality", 750_000, weight_u)


@pytest.mark.parametrize(("value", "weight"), [(7.0, 1.0), (-0.1, 1.0), (0.5, -1.0), (0.5, 2.0)])
def test_an_impossible_judgement_is_refused_by_its_id(value: float, weight: float) -> None:
    event = build(QualityJudged, value=value, weight=weight)
    with pytest.raises(InvalidEvent, match=event.id):
        sample_of(event, 1, 1)


def test_only_failures_of_the_machine_are_samples() -> None:
    lost = build(AttemptFailed, failure="stall", worker="desk", model="qwen3", domain="code")
    sample = sample_of(lost, 1, 1)
    assert sample is not None
    assert (sample.kind, sample.ok, sample.outcome) == ("failure", False, "stall")
    assert sample_of(build(AttemptFailed, failure="busy", worker="desk", model="qwen3", domain="code"), 1, 1) is None
    assert sample_of(build(AttemptFailed, failure="lost", worker=None), 1, 1) is None


def test_other_events_teach_nothing() -> None:
    assert sample_of(build(TaskSubmitted), 1, 1) is None
