from __future__ import annotations

import msgspec

from schemas.events import Removal, TaskRouted
from services.router.differences import differences
from support.builders import DESK_CANDIDATE, build

ROUTED = build(
    TaskRouted, candidates=(DESK_CANDIDATE,), removed=(Removal(model="m", worker="w", reason="paused: 2 h"),)
)


def test_the_same_differs_nowhere() -> None:
    assert differences(ROUTED, ROUTED) == []


def test_a_number_that_differs_in_its_last_bit_is_named_by_its_place() -> None:
    nearly = msgspec.structs.replace(DESK_CANDIDATE, cost_s=DESK_CANDIDATE.cost_s * (1 + 2**-52))
    [found] = differences(ROUTED, msgspec.structs.replace(ROUTED, candidates=(nearly,)))
    assert found.field == "candidates[0].cost_s"
    assert found.recorded != found.computed
    assert "candidates[0].cost_s: the log has" in found.words


def test_one_candidate_more_is_a_difference_of_the_whole_list() -> None:
    [found] = differences(ROUTED, msgspec.structs.replace(ROUTED, candidates=()))
    assert found.field == "candidates"
    assert len(found.words) < 200


def test_of_a_removal_the_code_counts_and_not_the_age_in_its_words() -> None:
    later = msgspec.structs.replace(ROUTED, removed=(Removal(model="m", worker="w", reason="paused: 1 h"),))
    other = msgspec.structs.replace(ROUTED, removed=(Removal(model="m", worker="w", reason="silent: 1 h"),))
    assert differences(ROUTED, later) == []
    assert [found.field for found in differences(ROUTED, other)] == ["removed[0].reason"]
