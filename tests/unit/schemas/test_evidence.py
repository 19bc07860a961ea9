"""Which samples count: opinions once, another model or machine anew, and the past as a prior of three samples."""

from __future__ import annotations

from itertools import permutations

import pytest

from schemas.cells import Sources
from schemas.evidence import PRIOR_HALVES
from schemas.samples import UNIT
from schemas.statistics import Sample, Statistics, effective, fold
from schemas.weights import WEIGHT_ONE
from support.samples import DAY_US, GB, cell, judged, speed


def thumb(seq: int, value: float, **fields: object) -> Sample:
    given = {"source": "thumb", "judge": "me", "task": "t1", "quality_w_u": 300_000}
    return judged(seq, value, **{**given, **fields})


def pair(seq: int, value: float, peer: str = "llama", **fields: object) -> Sample:
    return judged(seq, value, **{"peer": peer, "source": "judge", "judge": "phi", "digest": "d1", **fields})


def decode_rate(*samples: Sample) -> float:
    value = effective(
        Statistics([fold(samples)]), "qwen3", "code", "desk", model_bytes=5 * GB, now_us=10**12
    ).decode.value
    assert value is not None
    return value


# -- opinions


def test_of_one_clients_thumbs_on_one_task_the_latest_counts_in_whatever_order_they_come() -> None:
    told = [thumb(1, 1.0), thumb(2, 0.0), thumb(3, 1.0), thumb(4, 0.0)]
    only = fold([thumb(4, 0.0)])
    assert {fold(order) for order in permutations(told)} == {only}


def test_thumbs_of_other_clients_and_on_other_tasks_count_each() -> None:
    found = cell(thumb(1, 1.0), thumb(2, 1.0, judge="you"), thumb(3, 1.0, task="t2"), thumb(4, 1.0, task=None))
    assert (found.quality.n, found.sources.thumb) == (4, 4)


def test_a_thumb_that_comes_before_its_answers_completion_says_the_same() -> None:
    early, late = cell(thumb(1, 1.0, digest="d1"), speed(2)), cell(speed(1), thumb(2, 1.0, digest="d1"))
    assert (early.quality, early.sources, early.restarted) == (late.quality, late.sources, None)
    of_a_new_file = cell(speed(1), thumb(2, 1.0, digest="d2"), speed(3, digest="d2"))
    assert (of_a_new_file.quality.n, of_a_new_file.digest) == (1, "d2")


def test_a_thumb_taken_back_leaves_nothing() -> None:
    found = cell(thumb(1, 1.0), thumb(2, 0.5, quality_w_u=0))
    assert (found.quality.n, found.quality.w, found.sources) == (0, 0, Sources())


def check(seq: int, value: float, **fields: object) -> Sample:
    return judged(seq, value, **{"source": "check", "task": f"t{seq}", "digest": "d1", "topic": "code/sum", **fields})


def test_a_suites_prompt_that_the_same_file_is_asked_again_counts_once_by_its_latest_grade() -> None:
    """Ten runs of `headrace bench` are no ten times surer: the same question gets the same answer."""
    told = [check(1, 0.0), check(2, 1.0, judge="code"), check(3, 1.0)]
    assert {fold(order) for order in permutations(told)} == {fold(told[2:])}


def test_another_prompt_or_file_and_what_no_suite_asked_count_each() -> None:
    found = cell(check(1, 1.0), check(2, 1.0, topic="code/sort"), check(3, 1.0, topic=None), check(4, 1.0, topic=None))
    assert (found.quality.n, found.sources.check) == (4, 4)
    changed = cell(check(1, 0.0), speed(2), speed(3, digest="d2"), check(4, 1.0, digest="d2"))
    assert (changed.quality.n, changed.restarted is not None) == (1, True)
    assert 0 < changed.quality.wx < changed.quality.w * UNIT  # what the former file got is still its prior


def test_a_pair_that_the_same_judge_weighs_again_on_the_same_prompt_counts_once() -> None:
    told = [pair(seq, value, topic="writing/verse") for seq, value in ((1, 0.0), (2, 1.0), (3, 1.0))]
    assert {fold(order).pairs for order in permutations(told)} == {fold(told[2:]).pairs}
    apart = (pair(4, 1.0, judge="gemma"), pair(5, 1.0, peer="granite"), pair(6, 1.0, topic="writing/letter"))
    others = [fold([*told[2:], other]).pairs for other in apart]
    assert [sum(tally.n for tally in tallies) for tallies in others] == [2, 2, 2]


def test_a_verdict_that_cannot_be_read_takes_no_earlier_one_away() -> None:
    found = cell(pair(1, 1.0, topic="writing/verse"), pair(2, 0.5, topic="writing/verse", quality_w_u=0))
    assert (found.sources.judge, found.sources.void, found.pairs[0].n) == (1, 1, 1)


def test_an_equal_signal_counts_once_and_another_one_too() -> None:
    same = {"source": "signal", "task": "t1", "quality_w_u": 100_000}
    told = [judged(n, 0.0, judge=name, **same) for n, name in enumerate(("empty", "empty", "truncated", "empty"), 1)]
    assert (cell(*told).quality.n, cell(*told).sources.signal) == (2, 2)


def test_two_verdicts_of_a_judge_on_one_task_are_two() -> None:
    """Each of its pairs is a measurement; only people and signals repeat themselves."""
    assert cell(pair(1, 1.0, task="t1"), pair(2, 0.0, task="t1")).pairs[0].n == 2


def test_a_verdict_without_weight_is_counted_and_ages_nothing() -> None:
    alone = cell(*(judged(n, 1.0, source="judge") for n in range(1, 11)))
    among = cell(
        *(judged(n, 1.0, source="judge") for n in range(1, 11)),
        *(judged(n, 0.5, source="judge", quality_w_u=0) for n in range(11, 41)),
    )
    assert among.quality == alone.quality
    assert (among.sources.judge, among.sources.void) == (10, 30)


# -- comparisons


def test_comparisons_stand_apart_from_answers_judged_by_themselves() -> None:
    found = cell(judged(1, 0.25, source="check"), pair(2, 1.0), pair(3, 0.5), pair(4, 0.0, peer="gemma"))
    assert (found.quality.n, found.quality.p50) == (1, 250_000)
    assert [(tally.peer, tally.n, tally.x) for tally in found.pairs] == [("gemma", 1, 0), ("llama", 2, 1_500_000)]
    assert found.sources == Sources(judge=3, check=1)


def test_meeting_others_often_does_not_make_a_rare_meeting_forgotten() -> None:
    """The champion meets everybody; what it knows of a newcomer must not fade by that."""
    often = [pair(n, 1.0) for n in range(2, 102)]
    rare = {tally.peer: tally for tally in cell(pair(1, 0.0, peer="gemma"), *often).pairs}
    assert rare["gemma"].w == pytest.approx(WEIGHT_ONE * UNIT, rel=0.01)


# -- restarts


@pytest.mark.parametrize("changed", [{"digest": "d2"}, {"quantisation": "q8"}, {"digest": "d2", "quantisation": "q8"}])
def test_another_file_restarts_the_cell_and_the_cell_says_so(changed: dict[str, str]) -> None:
    old = [speed(n, quantisation="q4", decode_us=1_000_000) for n in range(1, 31)]
    found = cell(*old, speed(31, **{"quantisation": "q4", **changed}), speed(32, **{"quantisation": "q4", **changed}))
    assert (found.decode.n, found.ok_n, found.total.n) == (2, 2, 2)
    assert found.restarted is not None
    assert found.restarted.why == min(changed)
    assert (found.restarted.seq, found.restarted.at_us, found.restarted.n) == (31, 31_000_000, 30)
    assert found.restarted.rate == 100_000


def test_an_unknown_quantisation_is_no_other_one() -> None:
    assert cell(speed(1, quantisation="q4"), speed(2), speed(3, quantisation="q4")).restarted is None


def test_what_was_before_weighs_three_samples_at_most_and_then_less_and_less() -> None:
    old = [speed(n) for n in range(1, 101)]
    weights = []
    for count in (1, 21, 41, 700):
        new = [speed(n, digest="d2") for n in range(101, 101 + count)]
        weights.append(cell(*old, *new).decode.w - cell(*new).decode.w)
    assert weights[0] <= PRIOR_HALVES * WEIGHT_ONE // 2
    assert weights == sorted(weights, reverse=True)
    assert weights[1] == pytest.approx(weights[0] / 2, rel=0.05)
    assert weights[-1] == 0


def test_few_old_samples_weigh_no_more_than_they_did() -> None:
    found = cell(speed(1), speed(2, digest="d2"))
    assert found.decode.w < 2 * WEIGHT_ONE


def test_a_new_digest_starts_from_the_old_ones_quality_and_soon_leaves_it() -> None:
    good = [judged(n, 1.0, digest="d1", source="check") for n in range(1, 41)]
    pairs = [pair(n, 1.0, digest="d1") for n in range(41, 61)]
    poor = [judged(n, 0.0, digest="d2", source="check") for n in range(62, 82)]
    restart = speed(61, digest="d2")

    def quality(*samples: Sample) -> float:
        stats = Statistics([fold(samples)])
        value = effective(stats, "qwen3", "code", "desk", model_bytes=None, now_us=10**12).quality.value
        assert value is not None
        return value

    assert 0.6 < quality(*good, *pairs, restart) < quality(*good, *pairs)
    assert quality(*good, *pairs, restart, *poor) < 0.35
    restarted = cell(*good, *pairs, restart)
    assert (restarted.quality.n, restarted.pairs[0].n, restarted.sources) == (0, 0, Sources())
    weight = restarted.quality.w + sum(tally.w for tally in restarted.pairs)
    assert weight <= PRIOR_HALVES * WEIGHT_ONE * UNIT // 2


def test_a_machine_throttled_four_times_is_known_as_slow_within_ten_answers() -> None:
    fast = [speed(n) for n in range(1, 101)]
    slow = [speed(n, decode_us=8_000_000) for n in range(101, 111)]
    assert decode_rate(*fast, *slow) == pytest.approx(12.5, rel=0.35)
    found = cell(*fast, *slow)
    assert found.restarted is not None
    assert (found.restarted.why, found.restarted.seq, found.restarted.n, found.restarted.rate) == (
        "drift",
        101,
        100,
        50_000,
    )
    assert found.decode.n == 10


def test_the_restart_stays_where_the_machine_changed() -> None:
    fast = [speed(n) for n in range(1, 41)]
    for count in (3, 7, 12, 40, 200):
        found = cell(*fast, *(speed(n, decode_us=8_000_000) for n in range(41, 41 + count)))
        assert found.restarted is not None
        assert (found.restarted.seq, found.decode.n) == (41, count)


def test_two_slow_answers_are_no_other_machine() -> None:
    assert (
        cell(
            *(speed(n) for n in range(1, 41)), speed(41, decode_us=8_000_000), speed(42, decode_us=8_000_000)
        ).restarted
        is None
    )


def test_a_drift_leaves_the_judgements_alone() -> None:
    slow = [speed(n, decode_us=8_000_000) for n in range(50, 60)]
    found = cell(*(speed(n) for n in range(1, 41)), judged(45, 0.9, source="check"), *slow)
    assert found.quality.n == 1 and found.restarted is not None


def test_a_cell_that_is_judged_only_takes_its_judgements_digest() -> None:
    found = cell(judged(1, 0.9, digest="d1", source="check"), judged(2, 0.1, digest="d2", source="check"))
    assert (found.digest, found.quality.n, found.speed_at_us) == ("d2", 1, None)
    assert found.restarted is not None
    assert (found.restarted.n, found.restarted.rate) == (1, None)


def test_a_judgement_of_what_was_before_comes_late_and_is_of_the_past() -> None:
    runs = [speed(1), speed(2, digest="d2")]
    late = cell(*runs, *(judged(n, 1.0, digest="d1", source="check") for n in range(3, 40)))
    assert (late.digest, late.quality.n, late.quality_at_us) == ("d2", 0, None)
    assert 0 < late.quality.w <= PRIOR_HALVES * WEIGHT_ONE * UNIT // 2


def test_old_samples_fade_with_time_too() -> None:
    old = [speed(n) for n in range(1, 101)]
    soon, later = (cell(*old, speed(101, digest="d2", at_us=DAY_US * days)).decode.w for days in (1, 15))
    assert later - WEIGHT_ONE < 0.6 * (soon - WEIGHT_ONE)
