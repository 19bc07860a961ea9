"""10,000 random tasks under random limits: nothing above a limit at any prefix of the log, nothing leaked, order as promised.

The same seeds of ``python -m simulation fleet --case promises`` print more of each.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

import pytest

from schemas.events import TaskReleased
from services.router.dispatch import engine, planner
from services.router.dispatch.state import Task
from simulation.fleet import instances
from simulation.fleet.cases import promises
from simulation.fleet.product import Product
from simulation.fleet.report import Numbers

SEEDS = range(10)
TASKS = 1_000
FLEETS = ("F3", "F2", "F6")


@cache
def found(seed: int) -> Numbers:
    """Each takes some seconds of a core, and all tests ask about the same."""
    return promises(FLEETS[seed % 3], seed, tasks=TASKS)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_limit_is_exceeded_no_permit_leaks_and_every_inversion_says_why(seed: int) -> None:
    numbers = found(seed)
    assert not numbers["broken"] and not numbers["leaked"], (
        f"{numbers}; replay: python -m simulation fleet --case promises --fleet {FLEETS[seed % 3]} --seed {seed}"
    )


def test_nobody_is_jumped_more_than_four_times_or_overtaken_by_more_than_a_minutes_work() -> None:
    assert max(found(seed)["bypasses most"] for seed in SEEDS) <= 4
    assert max(found(seed)["overtaken most s"] for seed in SEEDS) > 0, "the budget was used at all"


def test_the_tail_is_no_longer_than_that_of_first_in_first_out() -> None:
    ratios = [found(seed)["p99 ours"] / found(seed)["p99 pull"] for seed in SEEDS]
    assert sum(ratios) / len(ratios) <= 1.0, ratios


@pytest.mark.parametrize("fleet", ["F2", "F3"])
def test_everyone_whom_a_look_ahead_jumps_counts_by_another_count_too(
    fleet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planner's own passes, but each jump is counted here: everybody between the head and the one that goes first."""
    jumped: Counter[str] = Counter()
    real = [False]
    look_ahead, planned = planner.Pass._warm_instead, planner.plan

    def counted(self: planner.Pass, waiting: list[Task], index: int, *rest: Any) -> Any:
        found = look_ahead(self, waiting, index, *rest)
        if found is not None and real[0]:
            between = waiting[index : waiting.index(found[0])]
            jumped.update(task.submitted.task for task in between if task.submitted.task not in self.gone)
        return found

    def plan(*args: Any, **options: Any) -> Any:
        real[0] = True
        try:
            return planned(*args, **options)
        finally:
            real[0] = False

    monkeypatch.setattr(planner.Pass, "_warm_instead", counted)
    monkeypatch.setattr(engine, "plan", plan)
    product = Product(instances.bursty(fleet, 1, load=0.6, tasks=120), pulse_s=1.0)
    assert product.run().complete
    assert 1 <= max(jumped.values()) <= 4
    said = {event.task: event.bypasses for event, _ in product.log if isinstance(event, TaskReleased)}
    assert {task: said[task] for task in jumped} == dict(jumped)
