"""The projection as of an earlier position: what it was then, bit for bit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.codec import decode
from schemas.errors import StoreError
from schemas.events import WorkerLeft, WorkerReported
from schemas.statistics import Cell
from services.projector import as_of as module
from services.projector.as_of import AsOf, as_of
from services.projector.store import Store
from support.folded import messages
from support.history import many

LOG = messages(many(600, tasks=120))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "projector").open()
    yield opened
    opened.close()


def cells_of(store: Store) -> list[Cell]:
    store.refresh()
    return sorted(store.cells(), key=repr)


def all_pages(store: Store, asked: AsOf) -> list[Cell]:
    found: list[Cell] = []
    while True:
        page = as_of(store, asked)
        found += page.cells
        if not page.more:
            return sorted(found, key=repr)
        asked = AsOf(position=page.position, after=page.after)


@pytest.mark.parametrize("end", [1, 40, 173, 400, 600])
def test_the_cells_of_a_position_are_those_of_a_projection_that_stopped_there(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: int
) -> None:
    monkeypatch.setattr(module, "CELLS_MOST", 3)
    store.apply(LOG)
    earlier = Store(tmp_path / "earlier").open()
    try:
        earlier.apply(LOG[:end])
        assert all_pages(store, AsOf(position=LOG[end - 1].seq)) == cells_of(earlier)
    finally:
        earlier.close()


def test_a_time_is_the_last_position_stored_by_then(store: Store) -> None:
    store.apply(LOG)
    at_us = LOG[300].at_us
    found = as_of(store, AsOf(at_us=at_us))
    assert found.position <= max(message.seq for message in LOG if message.at_us <= at_us)
    assert all_pages(store, AsOf(at_us=at_us)) == all_pages(store, AsOf(position=found.position))


def test_the_reports_are_the_last_ones_of_each_worker_by_then(store: Store) -> None:
    store.apply(LOG)
    told: dict[tuple[str, bool], int] = {}
    for message in LOG[:200]:
        event = decode(message.data)
        if isinstance(event, WorkerReported | WorkerLeft):
            told[event.worker, isinstance(event, WorkerLeft)] = message.seq
    assert told
    assert as_of(store, AsOf(position=0, folded=LOG[199].seq)).reports == sorted(told.values())


def test_what_was_not_folded_yet_is_refused_with_both_positions(store: Store) -> None:
    store.apply(LOG)
    with pytest.raises(StoreError, match=f"up to {LOG[-1].seq} and was asked for {LOG[-1].seq + 1}"):
        as_of(store, AsOf(position=LOG[-1].seq + 1))


def test_a_time_before_the_log_is_refused(store: Store) -> None:
    store.apply(LOG)
    with pytest.raises(
        StoreError, match=r"begins later than the time asked for, at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
    ):
        as_of(store, AsOf(at_us=1))


def test_an_empty_log_has_no_beginning_to_tell(store: Store) -> None:
    with pytest.raises(StoreError, match="time asked for; ask"):
        as_of(store, AsOf(at_us=1))
