"""10,000 random tasks under random limits: nothing above a limit at any prefix of the log, nothing leaked, order as promised.

The same seeds of ``python -m simulation fleet --case promises`` print more of each.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simulation.fleet.cases import promises
from simulation.fleet.report import Numbers

SEEDS = range(10)
TASKS = 1_000
FLEETS = ("F3", "F2", "F6")


@pytest.fixture(scope="module")
def found() -> Iterator[dict[int, Numbers]]:
    yield {seed: promises(FLEETS[seed % 3], seed, tasks=TASKS) for seed in SEEDS}


def test_no_limit_is_exceeded_no_permit_leaks_and_every_inversion_says_why(found: dict[int, Numbers]) -> None:
    bad = {seed: numbers for seed, numbers in found.items() if numbers["broken"] or numbers["leaked"]}
    assert bad == {}, (
        f"replay: python -m simulation fleet --case promises --fleet {FLEETS[min(bad) % 3]} --seed {min(bad)}"
    )


def test_nobody_is_jumped_more_than_four_times_or_overtaken_by_more_than_a_minutes_work(
    found: dict[int, Numbers],
) -> None:
    assert max(numbers["bypasses most"] for numbers in found.values()) <= 4
    assert max(numbers["overtaken most s"] for numbers in found.values()) > 0, "the budget was used at all"


def test_the_tail_is_no_longer_than_that_of_first_in_first_out(found: dict[int, Numbers]) -> None:
    ratios = [numbers["p99 ours"] / numbers["p99 pull"] for numbers in found.values()]
    assert sum(ratios) / len(ratios) <= 1.0, ratios
