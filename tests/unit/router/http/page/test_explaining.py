"""Every candidate part by part; the parts add up to the cost, and what was unknown is not a number."""

from __future__ import annotations

import msgspec
import pytest

from schemas.events import Choice, Measure, Removal, TaskRouted
from services.router.http.page.explaining import PARTS, explained
from services.router.port import TaskStatus
from support import builders

STATUS = TaskStatus(task="t1", state="waiting", reason="busy: x")


def routed(**changes: object) -> TaskRouted:
    desk = msgspec.structs.replace(builders.DESK_CANDIDATE, worker="w-1")
    lap = msgspec.structs.replace(desk, worker="w-2", cost_s=desk.cost_s + 9.0)
    choice = Choice(model=desk.model, worker="w-1", reason="least")
    removed = (Removal(model="llava", worker="w-2", reason="vision: llava takes no images"),)
    return builders.build(TaskRouted, **{"candidates": (lap, desk), "choice": choice, "removed": removed} | changes)


def test_the_parts_of_each_candidate_add_up_to_its_cost() -> None:
    told = explained(STATUS, routed(), (), {"w-1": "desktop", "w-2": "laptop"})
    lap, desk = told["candidates"]
    for row in (lap, desk):
        assert sum(row.parts) == pytest.approx(row.cost)
    assert (lap.on, lap.chosen, lap.more) == ("laptop", False, pytest.approx(9.0))
    assert (desk.on, desk.chosen, desk.more) == ("desktop", True, 0.0)
    assert told["removed"][0].reason == "vision: llava takes no images" and told["removed"][0].on == "laptop"


def test_an_unknown_wait_is_unknown_and_a_guess_has_no_samples() -> None:
    found = routed().candidates[1]
    unknown = msgspec.structs.replace(
        found,
        predicted=msgspec.structs.replace(found.predicted, wait_s=None),
        decode=msgspec.structs.replace(found.decode, level="prior", n=7),
        quality=Measure(value=0.48, level="prior", n=0),
    )
    (row,) = explained(STATUS, routed(candidates=(unknown,)), (), {})["candidates"]
    assert row.parts[PARTS.index("wait_s")] is None and row.n == 0 and row.on == "w-1"
    assert (round(row.points), row.points_n) == (48, 0)
    judged = msgspec.structs.replace(found, quality=Measure(value=0.7, level="model", n=3))
    (row,) = explained(STATUS, routed(candidates=(judged,)), (), {})["candidates"]
    assert (round(row.points), row.points_n) == (70, 3)


def test_a_choice_of_whichever_machine_takes_it_first_marks_the_best_of_its_model() -> None:
    choice = Choice(model=builders.DESK_CANDIDATE.model, worker=None, reason="least")
    assert [row.chosen for row in explained(STATUS, routed(choice=choice), (), {})["candidates"]] == [True, False]


def test_a_decision_that_is_not_known_says_so() -> None:
    told = explained(STATUS, None, (), {})
    assert told["candidates"] is None and told["decided"] == []
