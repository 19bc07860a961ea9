from __future__ import annotations

import pytest

from schemas.cells import quantile
from support.samples import cell, speed


@pytest.mark.parametrize("n", [1, 2, 3, 19, 20, 21, 100])
@pytest.mark.parametrize("percent", [50, 95])
def test_a_quantile_is_the_least_value_that_so_many_are_at_most(n: int, percent: int) -> None:
    values = list(range(n, 0, -1))
    found = quantile(values, percent)
    assert found is not None
    assert sum(value <= found for value in values) * 100 >= percent * n
    assert sum(value < found for value in values) * 100 < percent * n


def test_of_nothing_there_is_no_quantile() -> None:
    assert quantile([], 95) is None


def test_of_two_samples_the_95th_percentile_is_the_larger() -> None:
    """It was the smaller one: "95 % of what was seen was at most this" was untrue of every cell with fewer than 20 samples."""
    sums = cell(speed(1, total_us=1_000_000), speed(2, total_us=9_000_000)).total
    assert (sums.p50, sums.p95) == (1_000_000, 9_000_000)
