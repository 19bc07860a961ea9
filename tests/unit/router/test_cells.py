from __future__ import annotations

from schemas.census import Census, Marker
from schemas.statistics import Cell, Statistics, key_of
from services.router.cells import PATIENCE_S, Cells


def cell(worker: str, last_seq: int) -> Cell:
    return Cell(model="m", domain="code", worker=worker, last_seq=last_seq)


def marker(position: int, *cells: Cell) -> Marker:
    census = Census()
    for each in cells:
        census.put(key_of(each), each.last_seq)
    return census.marker(position)


def fed(*cells: Cell) -> tuple[Statistics, Cells]:
    stats = Statistics()
    batches = Cells(stats)
    for each in cells:
        batches.put(each, 0.0)
    return stats, batches


def test_a_batch_counts_when_it_is_whole() -> None:
    first, second = cell("w1", 10), cell("w2", 12)
    stats, cells = fed(first, second)
    assert len(stats) == 0
    assert cells.mark(marker(15, first, second))
    assert (len(stats), stats.position, cells.exact) == (2, 15, True)
    cells.put(cell("w1", 20), 1.0)
    assert (stats.cell("m", "code", "w1"), stats.position, cells.exact) == (first, 15, True)


def test_a_cell_that_was_missed_is_seen_and_the_statistics_say_so() -> None:
    first, missed = cell("w1", 10), cell("w2", 12)
    stats, cells = fed(first)
    assert not cells.mark(marker(15, first, missed))
    assert stats.cell("m", "code", "w1") == first
    assert not cells.exact
    cells.put(missed, 1.0)
    assert cells.mark(marker(16, first, missed))


def test_what_is_there_after_the_last_marker_at_the_start_is_used_and_not_vouched_for() -> None:
    first = cell("w1", 10)
    stats, cells = fed(first)
    cells.mark(marker(10, first))
    cells.put(cell("w1", 20), 0.0)
    cells.settle()
    assert (stats.position, cells.exact) == (20, False)
    assert cells.mark(marker(20, cell("w1", 20)))


def test_settling_with_nothing_held_keeps_exactness() -> None:
    first = cell("w1", 10)
    _, cells = fed(first)
    cells.mark(marker(10, first))
    cells.settle()
    assert cells.exact


def test_cells_of_a_projector_without_markers_are_used_after_a_while() -> None:
    stats, cells = fed(cell("w1", 10))
    assert not cells.beat(PATIENCE_S)
    assert len(stats) == 0
    assert cells.beat(PATIENCE_S + 0.1)
    assert (len(stats), cells.exact) == (1, False)


def test_an_older_projection_changes_no_statistics_and_is_not_vouched_for_until_it_has_caught_up() -> None:
    young = cell("w1", 20)
    stats, cells = fed(young)
    assert cells.mark(marker(20, young))
    cells.put(cell("w1", 10), 1.0)
    assert not cells.mark(marker(10, cell("w1", 10)))
    assert stats.cell("m", "code", "w1") == young
    assert cells.mark(marker(20, young))


def test_no_statistics_at_all_are_exactly_those_of_an_empty_log() -> None:
    stats, cells = fed()
    cells.settle()
    assert (stats.position, cells.exact) == (0, True)
