"""What further streams and others' use cost: learned from samples held against each other, and applied to the machine's rates."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from schemas.prediction import Effective, factor, predict
from schemas.samples import Sample
from schemas.statistics import Statistics, effective, fold, key_of
from support.samples import GB, speed

T1_US = 20_000
"""A token alone on the free machine: 50 tokens/s."""


def ran(seq: int, n: int = 1, *, beta: float = 1.0, use: float = 0.0, gamma: float = 1.0, **fields: object) -> Sample:
    """100 tokens among ``n`` streams, beside others who use ``use`` of the machine."""
    us = round(100 * T1_US * (1 + beta * (n - 1)) / factor(use, gamma))
    return speed(seq, concurrency=n, others_u=round(use * 1e6), decode_us=us, **fields)


def learn(samples: Iterable[Sample]) -> Statistics:
    cells: dict[object, list[Sample]] = {}
    for sample in samples:
        cells.setdefault(key_of(sample), []).append(sample)
    return Statistics(map(fold, cells.values()))


def expect(stats: Statistics, worker: str = "desk") -> Effective:
    return effective(stats, "qwen3", "code", worker, model_bytes=5 * GB, now_us=10**12)


def mixed(beta: float, count: int = 120) -> list[Sample]:
    """One to eight streams in turn, over four domains."""
    return [ran(seq, (1, 2, 1, 8)[seq // 4 % 4], beta=beta, domain="code maths chat write".split()[seq % 4])
            for seq in range(1, count + 1)]  # fmt: skip


def value(known: Effective, name: str) -> float:
    found: float | None = getattr(known, name).value
    assert found is not None
    return found


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.85, 1.0, 1.5])
def test_the_slowdown_is_learned(beta: float) -> None:
    known = expect(learn(mixed(beta)))
    assert value(known, "slowdown") == pytest.approx(beta, abs=0.12)
    assert known.slowdown.level == "worker" and known.slowdown.n > 0
    assert value(known, "decode") == pytest.approx(50, rel=0.15)


@pytest.mark.parametrize("gamma", [0.2, 0.7, 1.0, 1.2])
def test_the_weight_of_others_use_is_learned(gamma: float) -> None:
    samples = [ran(seq, use=(0.0, 0.5, 0.02, 0.6)[seq % 4], gamma=gamma) for seq in range(1, 120)]
    known = expect(learn(samples))
    assert value(known, "others_weight") == pytest.approx(gamma, abs=0.2)
    assert value(known, "decode") == pytest.approx(50, rel=0.12)
    assert known.others_weight.level == "worker"


def test_what_was_never_seen_together_stays_a_guess() -> None:
    known = expect(learn([ran(seq) for seq in range(1, 41)]))
    assert (known.slowdown.value, known.slowdown.level, known.slowdown.n) == (1.0, "prior", 0)
    assert (known.others_weight.value, known.others_weight.level, known.others_weight.n) == (1.0, "prior", 0)
    assert value(known, "decode") == pytest.approx(50, rel=0.05)


def test_a_machine_that_always_ran_eight_streams_keeps_the_rate_that_it_had_in_eight() -> None:
    known = expect(learn([ran(seq, 8, beta=0.1) for seq in range(1, 400)]))
    assert (known.slowdown.value, known.slowdown.level) == (1.0, "prior")
    in_eight = value(known, "decode") / (1 + value(known, "slowdown") * 7)
    assert in_eight == pytest.approx(50 / 1.7, rel=0.1)


@pytest.mark.parametrize("beta", [0.0, 1.5])
def test_one_sample_moves_little(beta: float) -> None:
    alone = [ran(seq) for seq in range(1, 30)]
    assert abs(value(expect(learn([*alone, ran(30, 8, beta=beta)])), "slowdown") - 1.0) < 0.35
    quiet_use = ran(30, use=0.5, gamma=2.0 * beta / 1.5)
    assert abs(value(expect(learn([*alone, quiet_use])), "others_weight") - 1.0) < 0.35


def test_a_machine_that_is_always_full_does_not_forget_how_fast_it_is_alone() -> None:
    alone = [ran(seq) for seq in range(1, 20)]
    full = [ran(seq, 8, beta=0.1) for seq in range(20, 400)]
    assert value(expect(learn([*alone, *full])), "slowdown") == pytest.approx(0.1, abs=0.15)


def test_hardly_any_use_tells_hardly_anything() -> None:
    at_rest, slower = {"others_u": 0}, {"others_u": 60_000, "decode_us": 2_400_000}
    noisy = [speed(seq, **(slower if seq % 2 else at_rest)) for seq in range(1, 41)]
    assert abs(value(expect(learn(noisy)), "others_weight") - 1.0) < 0.15


def test_slowdown_belongs_to_the_machine() -> None:
    stats = learn([*mixed(0.1), *[ran(seq, worker="lap") for seq in range(1000, 1040)]])
    assert value(expect(stats), "slowdown") < 0.25
    assert expect(stats, "lap").slowdown.level == "prior"


def test_a_game_beside_several_streams_teaches_neither() -> None:
    stats = learn([ran(seq, 1 if seq % 2 else 4, use=0.0 if seq % 2 else 0.5) for seq in range(1, 41)])
    known = expect(stats)
    assert (known.slowdown.n, known.others_weight.n) == (0, 0)


def test_unknown_use_is_the_worst_whatever_was_learned() -> None:
    samples = [ran(seq, use=0.5 * (seq % 2), gamma=0.1) for seq in range(1, 80)]
    known = expect(learn(samples))
    asked = {"prompt_tokens": 100, "max_tokens": 100, "resident": True, "wait_s": 0.0}
    silent, worst = predict(known, others_use=None, **asked), predict(known, others_use=1.0, **asked)
    assert silent.total_s is not None and worst.total_s is not None
    assert silent.total_s >= worst.total_s


def test_a_learned_weight_is_what_a_prediction_counts_with() -> None:
    known = expect(learn([ran(seq, use=0.5 * (seq % 2), gamma=0.1) for seq in range(1, 120)]))
    asked = {"prompt_tokens": 100, "max_tokens": 100, "resident": True, "wait_s": 0.0}
    free, busy = predict(known, others_use=0.0, **asked), predict(known, others_use=0.5, **asked)
    assert free.decode_s is not None and busy.decode_s is not None
    assert busy.decode_s / free.decode_s < 1.25  # a guess of 1 would say 2


def test_the_version_rises_with_what_changed_and_not_with_what_is_old() -> None:
    stats = learn([ran(seq) for seq in range(1, 5)])
    before = stats.version
    stats.put(fold([ran(1)]))
    assert stats.version == before
    stats.put(fold([ran(seq) for seq in range(1, 6)]))
    assert stats.version == before + 1
