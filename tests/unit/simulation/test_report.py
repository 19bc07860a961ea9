"""Tables and plots say what the numbers say, and a missed target is called one."""

from __future__ import annotations

from pathlib import Path

from simulation.fleet.plots import draw
from simulation.fleet.report import FLEETS, Results, document, missed, targets

GOOD = {
    "bound": 80.0,
    "oracle": 90.0,
    "ours": 99.0,
    "legacy_as_published": 700.0,
    "round_robin": 300.0,
    "least_in_flight": 290.0,
}


def results(**changes: float) -> Results:
    return {("burst", fleet): [GOOD | changes, GOOD | changes] for fleet in FLEETS}


def test_what_holds_is_shown_as_a_mean_of_ratios() -> None:
    table = targets(results())
    assert missed(results()) == 0
    assert any("legacy_as_published / ours | >= 5 | 7.07 ± 0.00" in line for line in table)


def test_a_missed_target_is_called_one() -> None:
    assert missed(results(ours=200.0)) > 0
    assert "**0.45 ± 0.00: missed**" not in "\n".join(targets(results()))
    assert missed(results(ours=70.0)) > 0, "below the bound is no triumph"


def test_only_what_was_run_is_shown() -> None:
    text = document(results(), 2)
    assert "Makespan of a cold burst" in text
    assert "p95" not in text


def test_the_same_numbers_draw_the_same_picture(tmp_path: Path) -> None:
    first, second = draw(results(), tmp_path / "a"), draw(results(), tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert [path.name for path in first] == ["simulation-burst.svg"]
    assert "<dc:date>" not in first[0].read_text(encoding="utf-8")
