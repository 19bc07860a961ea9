"""What a comparison of grades promises whatever the grades are."""

from __future__ import annotations

import random

from hypothesis import given, settings, strategies as st

from services.benchmarker.grades import LEVEL, by_prompt, compare, mean, wilson

VALUES = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.0, 1.0, allow_nan=False))
PAIRS = st.lists(st.tuples(VALUES, VALUES), max_size=40)
TRIALS = 600
RATE_MOST = (1 - LEVEL) + 3 * ((1 - LEVEL) * LEVEL / TRIALS) ** 0.5
"""The stated rate and three standard deviations of counting it."""


def sides(pairs: list[tuple[float, float]]) -> tuple[dict[str, float], dict[str, float]]:
    return {f"p{at:02}": a for at, (a, _) in enumerate(pairs)}, {f"p{at:02}": b for at, (_, b) in enumerate(pairs)}


@settings(max_examples=60, deadline=None)
@given(PAIRS, st.integers(0, 2**64 - 1))
def test_the_other_side_says_the_opposite(pairs: list[tuple[float, float]], seed: int) -> None:
    a, b = sides(pairs)
    said, turned = compare(a, b, seed=seed, draws=799), compare(b, a, seed=seed, draws=799)
    opposite = {"a better": "b better", "b better": "a better", "undecided": "undecided"}
    assert turned.verdict == opposite[said.verdict]
    assert (turned.low, turned.high) == (-said.high, -said.low)
    assert said.low <= said.high


@settings(max_examples=60, deadline=None)
@given(PAIRS, st.integers(0, 2**64 - 1))
def test_a_verdict_leaves_zero_out_and_lies_on_the_side_of_the_difference(
    pairs: list[tuple[float, float]], seed: int
) -> None:
    said = compare(*sides(pairs), seed=seed, draws=799)
    assert (said.verdict == "a better") == (said.low > 0)
    assert (said.verdict == "b better") == (said.high < 0)
    if said.verdict != "undecided":
        assert (said.difference > 0) == (said.verdict == "a better")


@given(st.lists(st.tuples(st.sampled_from("abcde"), VALUES), min_size=1, max_size=30))
def test_asking_again_makes_nothing_surer(answers: list[tuple[str, float]]) -> None:
    once, thrice = by_prompt(answers), by_prompt(answers * 3)
    assert once.keys() == thrice.keys()
    value, again = mean(once), mean(thrice)
    assert value is not None and again is not None and abs(value - again) < 1e-9
    assert len(once) == len({prompt for prompt, _ in answers})


@given(VALUES, st.integers(1, 1000))
def test_wilsons_interval_holds_the_mean_and_stays_within_the_grades(value: float, n: int) -> None:
    low, high = wilson(value, n)
    assert 0.0 <= low <= value + 1e-9 and value - 1e-9 <= high <= 1.0


def test_shuffled_labels_are_undecided_at_the_stated_rate() -> None:
    """Real models differ; whose grade is whose says nothing any more once each prompt's two are swapped at random."""
    for n, kinds in ((7, (0.0, 1.0)), (14, (0.0, 1.0)), (14, (0.0, 0.25, 0.5, 1.0)), (40, (0.0, 1.0))):
        chance = random.Random(n)
        decided = 0
        for trial in range(TRIALS):
            a = [chance.choice(kinds) if chance.random() < 0.4 else 1.0 for _ in range(n)]
            b = [chance.choice(kinds) for _ in range(n)]
            pairs = [(x, y) if chance.random() < 0.5 else (y, x) for x, y in zip(a, b, strict=True)]
            decided += compare(*sides(pairs), seed=trial, draws=399).verdict != "undecided"
        assert decided / TRIALS <= RATE_MOST, (n, kinds, decided)


def test_a_real_difference_is_found_more_often_the_more_prompts_there_are() -> None:
    found = []
    for n in (10, 20, 40):
        chance = random.Random(n)
        trials = [
            compare(
                *sides([(float(chance.random() < 0.8), float(chance.random() < 0.35)) for _ in range(n)]),
                seed=trial,
                draws=399,
            ).verdict
            for trial in range(200)
        ]
        assert trials.count("b better") <= 5
        found.append(trials.count("a better"))
    assert found[0] < found[1] < found[2]
    assert found[2] > 180
