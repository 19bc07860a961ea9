"""One pair's cost: the sum of its parts, with the unknown counted as the worst."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from schemas.cells import Cell
from schemas.events import Candidate
from services.router.fleet import WorkerView
from services.router.policy.filters import pairs_of
from services.router.policy.request import RouteRequest
from services.router.policy.scorer import score
from support.fleets import GIB5, NOW_US, cell, measured, model, worker

CELL = cell("m", "code", "w", n=400, decode=50, prefill=1000, load_s=4, output=300, quality=0.8)
ASKS = RouteRequest(domain="code", prompt_tokens=500)


@dataclass
class Desk:
    slider: float = 1.0

    def score(self, view: WorkerView, *cells: Cell, asks: RouteRequest = ASKS) -> Candidate:
        return score(pairs_of("m", [view])[0], asks, measured(cells), slider=self.slider, now_us=NOW_US)


def test_the_cost_is_predicted_seconds_less_what_quality_is_worth() -> None:
    candidate = Desk(slider=2.0).score(worker("w", "m", wait_s=3.0, resident=frozenset()), CELL)
    predicted = candidate.predicted
    assert predicted.wait_s == 3.0
    assert predicted.load_s == pytest.approx(4.0, rel=0.1)
    assert predicted.prefill_s == pytest.approx(0.5, rel=0.1)
    assert predicted.decode_s == pytest.approx(6.0, rel=0.1)
    assert predicted.total_s == pytest.approx(13.5, rel=0.1)
    assert candidate.quality.value == pytest.approx(0.8, rel=0.1)
    assert predicted.total_s is not None and candidate.quality.value is not None
    assert candidate.cost_s == pytest.approx(predicted.total_s - 200.0 * candidate.quality.value)
    assert (candidate.decode.level, candidate.decode.n, candidate.decode.age_s) == ("cell", 400, 60.0)


def test_a_loaded_model_loads_in_no_time_and_an_unknown_one_as_if_it_were_not_loaded() -> None:
    desk = Desk()
    loaded, cold, unknown = (
        desk.score(worker("w", "m", resident=resident), CELL) for resident in (frozenset({"m"}), frozenset(), None)
    )
    assert loaded.predicted.load_s == 0.0
    assert cold.predicted.load_s == unknown.predicted.load_s == pytest.approx(4.0, rel=0.1)
    assert (loaded.resident, cold.resident, unknown.resident) == (True, False, None)


def test_what_a_worker_once_reported_is_no_substitute_for_silence_about_residency() -> None:
    said_once = worker("w", model("m", resident=True), resident=None)
    assert Desk().score(said_once, CELL).resident is None


def test_residency_by_the_backends_own_name_counts() -> None:
    view = worker("w", model("m", backend_name="hub/m-gguf"), resident=frozenset({"hub/m-gguf"}))
    assert Desk().score(view, CELL).resident is True


def test_a_game_on_the_machine_slows_it_and_silence_is_no_better_than_a_game() -> None:
    desk = Desk()
    idle, half, full, unknown = (
        desk.score(worker("w", "m", others_use=use), CELL).cost_s for use in (0.0, 0.5, 1.0, None)
    )
    assert idle < half < full == unknown


def test_a_stale_load_is_an_unknown_load() -> None:
    desk = Desk()
    stale = desk.score(worker("w", "m", fresh=False), CELL)
    nothing = desk.score(worker("w", "m", others_use=None, resident=None), CELL)
    assert stale.cost_s == nothing.cost_s
    assert (stale.fresh, stale.others_use, stale.resident) == (False, None, None)
    assert desk.score(worker("w", "m", alive=False), CELL).predicted.wait_s is None


def test_an_answer_is_not_longer_than_allowed() -> None:
    desk = Desk()
    free = desk.score(worker("w", "m"), CELL).predicted.decode_s
    capped = desk.score(worker("w", "m"), CELL, asks=RouteRequest(domain="code", prompt_tokens=500, max_tokens=30))
    assert free is not None
    assert capped.predicted.decode_s == pytest.approx(free / 10, rel=0.1)


def test_an_unmeasured_pair_has_a_cost_and_says_that_it_is_a_guess() -> None:
    candidate = Desk().score(worker("w", model("m", bytes=None)))
    assert {m.level for m in (candidate.decode, candidate.prefill, candidate.load, candidate.quality)} == {"prior"}
    assert candidate.uncertainty == 1.0
    assert candidate.digest is None


def test_a_bigger_unmeasured_model_is_expected_to_be_slower_on_a_measured_machine() -> None:
    known = cell("other", "code", "w", decode=40, prefill=900, model_bytes=GIB5)
    costs = [Desk().score(worker("w", model("m", bytes=size)), known) for size in (GIB5, 4 * GIB5)]
    assert costs[0].decode.level == costs[1].decode.level == "worker"
    assert costs[0].cost_s < costs[1].cost_s
