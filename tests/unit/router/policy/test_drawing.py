"""Whose turn it is: shares that hold at every moment, whatever was drawn before."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, strategies as st

from services.router.policy.drawing import next_target, shares, stand_in
from services.router.policy.routes import Target


def targets(*weights: float) -> list[Target]:
    return [Target(model=f"m{n}", weight=weight) for n, weight in enumerate(weights)]


def draw(among: list[Target], times: int, counts: Counter[str] | None = None) -> Counter[str]:
    counts = Counter() if counts is None else counts
    for _ in range(times):
        counts[next_target(among, counts).name] += 1
    return counts


def test_case_20_of_1_000_requests_95_to_5_each_target_gets_its_share_within_one() -> None:
    counts = draw(targets(95, 5), 1_000)
    assert abs(counts["m0"] - 950) <= 1
    assert abs(counts["m1"] - 50) <= 1


def test_weights_100_and_300_are_a_quarter_and_three_quarters_whatever_their_workers() -> None:
    """A target is a model: how many workers it has is not asked here at all."""
    assert shares(targets(100, 300)) == {"m0": 0.25, "m1": 0.75}
    assert draw(targets(100, 300), 400) == {"m0": 100, "m1": 300}


def test_without_weights_it_goes_round() -> None:
    counts: Counter[str] = Counter()
    order = []
    for _ in range(6):
        order.append(next_target(targets(0, 0, 0), counts).name)
        counts[order[-1]] += 1
    assert order == ["m0", "m1", "m2"] * 2


@given(st.lists(st.integers(1, 100), min_size=2, max_size=4), st.integers(1, 300))
def test_a_share_is_met_at_every_moment_and_not_only_in_the_end(weights: list[int], times: int) -> None:
    counts = draw(targets(*weights), times)
    for name, share in shares(targets(*weights)).items():
        assert abs(counts[name] - share * times) <= len(weights) - 1


@given(st.lists(st.integers(1, 100), min_size=2, max_size=4), st.integers(0, 99))
def test_a_restart_from_the_counts_goes_on_as_if_nothing_had_been(weights: list[int], at: int) -> None:
    before = draw(targets(*weights), at)
    assert draw(targets(*weights), 100 - at, Counter(before)) == draw(targets(*weights), 100)


@pytest.mark.parametrize("weights", [(1, 1), (3, 1)])
def test_a_stand_in_is_the_same_each_time_and_over_many_tasks_by_the_weights(weights: tuple[float, ...]) -> None:
    among = targets(*weights)
    drawn = Counter(stand_in(among, seed).name for seed in range(4_000))
    assert {stand_in(among, 7).name for _ in range(5)} == {stand_in(list(reversed(among)), 7).name}
    for name, share in shares(among).items():
        assert abs(drawn[name] / 4_000 - share) < 0.03
