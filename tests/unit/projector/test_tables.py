"""The tables as SQL text: documented in full, and readable by the DuckDB that people have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from services.projector import tables
from services.projector.views import VIEWS

SQL_MD = (Path(__file__).parents[3] / "docs" / "sql.md").read_text()


@pytest.fixture(scope="module")
def empty() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        for statement in tables.create():
            connection.execute(statement)
        yield connection


def names(empty: duckdb.DuckDBPyConnection) -> list[str]:
    return [name for (name,) in empty.execute("SHOW TABLES").fetchall()]


def test_every_column_of_every_table_and_view_is_documented(empty: duckdb.DuckDBPyConnection) -> None:
    for name in set(names(empty)) - {"cells", "task_facts"}:  # these two are described by rule
        columns = [column for column, *_ in empty.execute(f"DESCRIBE {name}").fetchall()]
        (row,) = [line for line in SQL_MD.splitlines() if line.startswith(f"| `{name}` |")]
        told = [word for part in re.findall(r"`([^`]*)`", row.split("|", 3)[3]) for word in part.split()]
        assert sorted(set(columns) - set(told)) == [], name


def test_every_example_of_the_documentation_runs(empty: duckdb.DuckDBPyConnection) -> None:
    examples = re.findall(r"```sql\n(.*?)```", SQL_MD, flags=re.S)
    assert len(examples) >= 2
    for example in examples:
        empty.execute(example)


def test_an_empty_projection_answers_with_no_rows(empty: duckdb.DuckDBPyConnection) -> None:
    assert {name: empty.execute(f"SELECT count(*) FROM {name}").fetchone() for name in VIEWS} == dict.fromkeys(
        VIEWS, (0,)
    )
