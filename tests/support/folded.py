"""What a projection must hold, computed from scratch in Python, and what it does hold.

Answers "are the tables the fold of the log?". ``expected`` never touches DuckDB; ``held`` reads a closed or snapshot file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb

from schemas.codec import UnknownEvent, decode
from schemas.errors import InvalidEvent
from schemas.statistics import Cell, CellKey, Sample, fold, key_of, sample_of
from services.projector import tables
from services.projector.cells_sql import cell_of
from services.runtime.stored import StoredMessage
from support.history import Raw


def messages(log: Iterable[Raw]) -> list[StoredMessage]:
    """A log as a feed would hand it out."""
    return [StoredMessage(raw.seq, raw.subject, raw.data, None, raw.at_us) for raw in log]


def expected(log: Iterable[StoredMessage]) -> dict[str, Any]:
    """The cells, the sequences of the samples, and those of what is dead."""
    groups: dict[CellKey, list[Sample]] = defaultdict(list)
    dead: list[int] = []
    for message in log:
        try:
            event = decode(message.data)
            if isinstance(event, UnknownEvent):
                dead.append(message.seq)
                continue
            sample = sample_of(event, message.seq, message.at_us)
        except InvalidEvent:
            dead.append(message.seq)
            continue
        if sample is not None:
            groups[key_of(sample)].append(sample)
    samples = sorted(sample.seq for group in groups.values() for sample in group)
    return {"cells": {key: fold(group) for key, group in groups.items()}, "samples": samples, "dead": dead}


def held(file: Path) -> dict[str, Any]:
    with duckdb.connect(str(file), read_only=True) as connection:
        return {
            "cells": cells_in(connection),
            "samples": [seq for (seq,) in connection.execute("SELECT seq FROM samples ORDER BY seq").fetchall()],
            "dead": [seq for (seq,) in connection.execute("SELECT seq FROM dead ORDER BY seq").fetchall()],
        }


def cells_in(connection: duckdb.DuckDBPyConnection) -> dict[CellKey, Cell]:
    rows = connection.execute("SELECT * EXCLUDE (cell) FROM cells").fetchall()
    return {key_of(cell): cell for cell in map(cell_of, rows)}


def everything(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, in an order of its own; marks of what was published apart."""
    contents = {}
    with duckdb.connect(str(file), read_only=True) as connection:
        for table in (*tables.APPENDED, "cell_key", "cells"):
            contents[table] = connection.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall()
    return contents
