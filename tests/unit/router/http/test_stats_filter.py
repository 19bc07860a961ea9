"""A name is understood as elsewhere, and one that means nothing is answered with the nearest."""

from __future__ import annotations

import pytest

from schemas.cells import Cell
from schemas.errors import UnknownModel
from schemas.pools import Statistics
from services.router.fleet import Fleet
from services.router.http.stats_filter import StatsFilter, held, matching, resolved, size_of
from services.router.port import UnknownDomain, UnknownWorker
from support.router_port import DESKTOP, LAPTOP

FLEET = Fleet(workers={"w-1": DESKTOP, "w-2": LAPTOP})
STATS = Statistics(
    [
        Cell(model="qwen3", domain="code", worker="w-1"),
        Cell(model="gone/model:8b", domain="haiku", worker="w-left"),
        Cell(model="qwen3", domain="maths"),
    ]
)


def wanted(**names: str) -> StatsFilter:
    return resolved(StatsFilter(**names), STATS, FLEET)


def test_a_machine_is_found_by_name_by_id_and_after_it_left() -> None:
    assert wanted(worker="desktop").worker == wanted(worker="DESKTOP").worker == wanted(worker="w-1").worker == "w-1"
    assert wanted(worker="w-left").worker == "w-left"


def test_a_model_is_found_by_any_name_that_it_has_and_after_its_holder_left() -> None:
    assert wanted(model="qwen3:8b").model == wanted(model="qwen3").model == "qwen3"
    assert wanted(model="gone/model:8b").model == "gone/model:8b"


def test_a_domain_is_known_when_it_is_built_in_or_was_measured() -> None:
    assert (wanted(domain="summarise").domain, wanted(domain="haiku").domain) == ("summarise", "haiku")


def test_a_name_that_means_nothing_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownModel, match="qwen33") as model:
        wanted(model="qwen33")
    with pytest.raises(UnknownDomain, match="cod") as domain:
        wanted(domain="cod")
    with pytest.raises(UnknownWorker, match="desk") as worker:
        wanted(worker="desk")
    assert model.value.nearest[0] == "qwen3"
    assert domain.value.nearest[0] == "code"
    assert worker.value.nearest[0] == "desktop"


def test_cells_and_held_pairs_follow_the_same_filter() -> None:
    assert {(cell.domain, cell.worker) for cell in matching(STATS, wanted(model="qwen3"))} == {
        ("code", "w-1"),
        ("maths", None),
    }
    assert set(held(FLEET, wanted(worker="desktop"))) == {("qwen3", "w-1"), ("smollm2:135m", "w-1")}
    assert set(held(FLEET, wanted(model="smollm2:135m"))) == {("smollm2:135m", "w-1"), ("smollm2:135m", "w-2")}
    assert (size_of(FLEET, "qwen3", "w-9"), size_of(FLEET, "none", "w-1"), size_of(FLEET, "qwen3", None)) == (None,) * 3
