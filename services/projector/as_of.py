"""What the projection would have said earlier: the cells of the log up to a position, and the reports that were in force.

Answers ``rpc.projector.as_of``. It is what a decision needs to be computed again, and what "as things stood two hours ago" means.
It computes anew from ``samples``, which keep everything; nothing that is kept is touched.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from schemas.errors import StoreError
from schemas.statistics import Cell
from services.projector.cells_sql import cell_of, cells_select
from services.projector.store import Store

FACTS = (
    "SELECT seq, at_us FROM samples UNION ALL SELECT seq, at_us FROM task_facts "
    "UNION ALL SELECT seq, at_us FROM worker_reports"
)
CELLS_MOST = 400
"""A page: at about 1 KiB each well below a server's smallest max_payload of 1 MiB."""


class AsOf(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Up to ``position``, or to the last fact stored by ``at_us``; ``folded`` is how far reports count, ``position`` where left
    out. ``after`` is the number of the last cell of the page before."""

    position: int | None = None
    at_us: int | None = None
    folded: int | None = None
    after: int = 0


class AsOfAnswer(msgspec.Struct, kw_only=True):
    """``reports`` are the sequences of each worker's last ``worker.reported`` and ``worker.left``; with ``more`` the next page
    begins ``after`` this one's last cell."""

    position: int = 0
    cells: list[Cell] = []
    reports: list[int] = []
    after: int = 0
    more: bool = False
    error: str | None = None


def as_of(store: Store, asked: AsOf) -> AsOfAnswer:
    """Raises StoreError for a position that the projection has not reached, or a time before the log's first fact."""
    position = _position(store, asked)
    page = store.ask(
        "SELECT DISTINCT cell FROM cell_key WHERE cell > $1 ORDER BY cell LIMIT $2", [asked.after, CELLS_MOST + 1]
    )
    numbers = [int(row["cell"]) for row in page[:CELLS_MOST]]
    where = "s.seq <= $1 AND k.cell IN (SELECT unnest($2::INTEGER[]))"
    rows = store.ask(cells_select(where), [position, numbers]) if numbers else []
    return AsOfAnswer(
        position=position,
        cells=[cell_of(_values(row)) for row in rows],
        reports=_reports(store, position if asked.folded is None else asked.folded) if asked.after == 0 else [],
        after=numbers[-1] if numbers else asked.after,
        more=len(page) > CELLS_MOST,
    )


def _position(store: Store, asked: AsOf) -> int:
    if asked.at_us is not None:
        found = store.ask(f"SELECT max(seq) AS seq FROM ({FACTS}) WHERE at_us <= $1", [asked.at_us])[0]["seq"]
        if found is None:
            raise StoreError(f"the log begins later than the time asked for{_beginning(store)}; ask for a later one")
        return int(found)
    position = asked.position or 0
    if position > store.position:
        raise StoreError(
            f"the projection has folded the log up to {store.position} and was asked for {position}; try again when it has "
            "caught up, as `headrace doctor` shows"
        )
    return position


def _beginning(store: Store) -> str:
    """``, at 2026-11-29 22:05:07 UTC``; nothing where it is empty."""
    at_us = store.ask(f"SELECT min(at_us) AS at_us FROM ({FACTS})", [])[0]["at_us"]
    return "" if at_us is None else f", at {datetime.fromtimestamp(int(at_us) / 1e6, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _reports(store: Store, folded: int) -> list[int]:
    found = store.ask(
        'SELECT max(seq) AS seq FROM worker_reports WHERE seq <= $1 GROUP BY worker, "left" ORDER BY 1', [folded]
    )
    return [int(row["seq"]) for row in found]


def _values(row: dict[str, Any]) -> list[Any]:
    """The columns of a cell in their order, without its number."""
    return [value for name, value in row.items() if name != "cell"]
