"""The fold of samples is one function, in Python and in SQL: no order, batching or machine changes a bit of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import duckdb
import pytest
from hypothesis import given, settings, strategies as st

from schemas.statistics import Cell, CellKey, Sample, fold, key_of
from schemas.weights import WEIGHT_ONE, weight
from services.projector import cells_sql, tables
from services.projector.batch import Batch, Keys
from services.projector.cells_sql import cell_of
from services.projector.store import appends
from support.samples import changing_log, judged_log, sample_log


def folded(log: list[Sample]) -> dict[CellKey, Cell]:
    groups: dict[CellKey, list[Sample]] = defaultdict(list)
    for sample in log:
        groups[key_of(sample)].append(sample)
    return {key: fold(samples) for key, samples in groups.items()}


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        for statement in tables.create():
            connection.execute(statement)
        yield connection


def by_sql(database: duckdb.DuckDBPyConnection, batches: list[list[Sample]]) -> dict[CellKey, Cell]:
    """Each batch appended and refreshed by itself, as the live projector does."""
    for table in ("samples", "cell_key", "cells"):
        database.execute(f"DELETE FROM {table}")
    keys = Keys()
    for samples in batches:
        batch = Batch(keys)
        for sample in samples:
            batch.add_sample(sample)
        for sql, parameters in appends(batch):
            database.execute(sql, parameters)
        touched = sorted(batch.touched)
        database.execute(cells_sql.FORGET, [touched])
        database.execute(cells_sql.REFRESH, [touched])
    return cells_of(database)


def cells_of(database: duckdb.DuckDBPyConnection) -> dict[CellKey, Cell]:
    rows = database.execute("SELECT * EXCLUDE (cell) FROM cells").fetchall()
    return {key_of(cell): cell for cell in map(cell_of, rows)}


@given(log=sample_log(), cuts=st.lists(st.integers(1, 60), max_size=3))
@settings(max_examples=25, deadline=None)
def test_sql_adds_up_what_python_adds_up_in_any_batches(
    database: duckdb.DuckDBPyConnection, log: list[Sample], cuts: list[int]
) -> None:
    edges = sorted({0, len(log), *(cut for cut in cuts if cut < len(log))})
    batches = [log[start:end] for start, end in pairwise(edges)]
    assert by_sql(database, batches) == folded(log)


@given(log=changing_log())
@settings(max_examples=12, deadline=None)
def test_sql_and_python_see_the_same_change_of_a_machine(
    database: duckdb.DuckDBPyConnection, log: list[Sample]
) -> None:
    assert by_sql(database, [log]) == folded(log)


@given(log=judged_log())
@settings(max_examples=20, deadline=None)
def test_sql_and_python_count_the_same_opinions(database: duckdb.DuckDBPyConnection, log: list[Sample]) -> None:
    assert by_sql(database, [log]) == folded(log)


@given(log=sample_log(), data=st.data())
@settings(max_examples=8, deadline=None)
def test_order_of_arrival_changes_nothing_in_sql(
    database: duckdb.DuckDBPyConnection, log: list[Sample], data: st.DataObject
) -> None:
    assert by_sql(database, [data.draw(st.permutations(log))]) == folded(log)
    database.execute(cells_sql.REBUILD)
    assert cells_of(database) == folded(log)


@given(log=sample_log(), data=st.data())
@settings(deadline=None)
def test_order_and_repeats_change_nothing_in_python(log: list[Sample], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(log + data.draw(st.lists(st.sampled_from(log), max_size=5))))
    assert folded(shuffled) == folded(log)


@given(younger=st.integers(0, 10_000), age_us=st.integers(0, 10**16))
def test_a_weight_only_falls_with_younger_samples_and_with_age(younger: int, age_us: int) -> None:
    assert 0 <= weight(younger + 1, age_us) <= weight(younger, age_us) <= WEIGHT_ONE
    assert weight(younger, age_us + 10**10) <= weight(younger, age_us)
