from __future__ import annotations

import pytest

from services.benchmarker.grades import Interval, by_prompt, compare, mean, wilson


def graded(values: list[float]) -> dict[str, float]:
    return {f"p{at:02}": value for at, value in enumerate(values)}


def test_answers_to_one_prompt_are_one_grade() -> None:
    assert by_prompt([("a", 1.0), ("a", 0.0), ("b", 1.0)]) == {"a": 0.5, "b": 1.0}
    assert mean({"a": 0.5, "b": 1.0}) == 0.75
    assert mean({}) is None


def test_wilsons_interval_is_the_published_one() -> None:
    """8 of 10: 0.4902 to 0.9433 (Brown, Cai, DasGupta 2001, by their formula)."""
    assert wilson(0.8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(1.0, 10).high == 1.0
    assert wilson(0.5, 0) == Interval(0.0, 1.0)


def test_a_clear_difference_is_decided_and_said_from_either_side() -> None:
    a, b = graded([1.0] * 14), graded([0.0] * 8 + [1.0] * 6)
    assert compare(a, b, seed=1).verdict == "a better"
    turned = compare(b, a, seed=1)
    assert turned.verdict == "b better"
    assert (turned.low, turned.high) == (-compare(a, b, seed=1).high, -compare(a, b, seed=1).low)


def test_the_word_and_the_interval_say_the_same() -> None:
    said = compare(graded([1.0] * 14), graded([0.0] * 6 + [1.0] * 8), seed=1)
    assert said.verdict == "a better" and said.low > 0
    said = compare(graded([1.0] * 14), graded([0.0] * 4 + [1.0] * 10), seed=1)
    assert said.verdict == "undecided" and said.low <= 0 < said.difference


@pytest.mark.parametrize("n", [0, 1, 3, 5])
def test_fewer_than_six_prompts_decide_nothing(n: int) -> None:
    assert compare(graded([1.0] * n), graded([0.0] * n), seed=1).verdict == "undecided"


def test_six_that_all_agree_decide() -> None:
    assert compare(graded([1.0] * 6), graded([0.0] * 6), seed=1).verdict == "a better"


def test_prompts_that_only_one_has_are_left_out() -> None:
    said = compare(graded([1.0] * 20), {"p00": 0.0, "other": 0.0}, seed=1)
    assert (said.n, said.verdict) == (1, "undecided")


def test_equal_grades_are_undecided_whatever_they_are() -> None:
    for value in (0.0, 0.5, 1.0):
        said = compare(graded([value] * 30), graded([value] * 30), seed=1)
        assert (said.verdict, said.difference, said.low, said.high) == ("undecided", 0.0, 0.0, 0.0)


def test_many_prompts_are_drawn_from_and_a_seed_repeats_it() -> None:
    a, b = graded([1.0, 0.0, 1.0] * 30), graded([1.0, 0.0, 0.0] * 30)
    assert compare(a, b, seed=7) == compare(a, b, seed=7)
    assert compare(a, b, seed=7).verdict == "a better"
