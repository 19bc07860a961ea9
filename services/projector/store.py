"""The DuckDB file: applied batches, recomputed cells, snapshots, healing.

Answers "how do rows get in exactly once?". The position is in the same transaction as the rows it stands for, so a crash at any
moment loses or repeats nothing; what the log repeats is passed over. All calls come from one thread. It knows no NATS.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from schemas.errors import StoreError
from schemas.statistics import Cell, CellKey
from services.projector import cells_sql, tables
from services.projector.batch import Batch, Keys
from services.projector.cells_sql import cell_of
from services.projector.files import Files
from services.projector.heartbeats import HeartbeatRow
from services.projector.rows import KeyRow
from services.runtime.logs import logger
from services.runtime.stored import StoredMessage

log = logger("projector")

CONFIG: dict[str, Any] = {
    "storage_compatibility_version": "v1.5.0",  # PyPI's duckdb-cli stops at 1.5 and reads snapshots of this version
    "autoinstall_known_extensions": False,  # each attempt to download blocks for seconds
    "autoload_known_extensions": False,
    "threads": 1,  # a second one makes a batch no faster and costs a tenth more CPU; recomputations are rare and short
}
NOT_CORRUPT = (
    "Could not set lock",
    "No space left",
    "Permission denied",
    "Too many open files",
    "Read-only file system",
    "Cannot allocate",
)
"""Errors of opening a file that say nothing against the file."""
REFUSED = (duckdb.DataError, duckdb.ProgrammingError, duckdb.IntegrityError, duckdb.NotSupportedError)
"""Errors about a row. All others (a full disk, no memory, a torn page) are the file's: it is opened again, and healed if that
fails; no event is parked for them."""

_encoder = msgspec.json.Encoder()


class Store:
    """``Store(directory).open()``; ``position`` is the last EVENTS sequence in it."""

    def __init__(self, directory: Path) -> None:
        self.files = Files(directory)
        self.position = 0
        self.heartbeats = 0
        self.dirty = False
        self._con: duckdb.DuckDBPyConnection | None = None
        self._keys = Keys()
        self._touched: set[int] = set()

    # -- opening -----------------------------------------------------------------------------------------------------------

    def open(self) -> Store:
        """Open the live file; make it where there is none; heal it from the snapshot, or from nothing, where it is corrupt."""
        self.files.lock()
        try:
            self._open_or_heal()
        except BaseException:
            self.files.unlock()
            raise
        return self

    def close(self) -> None:
        self._disconnect()
        self.files.unlock()

    def reopen(self) -> None:
        """After an error that was not about the rows: what was not committed is forgotten."""
        self._disconnect()
        self._open_or_heal()

    def start_over(self, reason: str) -> None:
        """Set the file aside and begin an empty one: the log will be replayed."""
        log.warning("projection set aside, the log is replayed", action="projection_set_aside", reason=reason)
        self._disconnect()
        self.files.set_aside()
        self._connect()

    def _open_or_heal(self) -> None:
        try:
            self._connect()
            return
        except duckdb.Error as error:
            self._disconnect()
            if any(words in str(error) for words in NOT_CORRUPT):
                raise StoreError(f"cannot open {self.files.live}: {error}") from error
            reason = str(error)
        log.error("live file unusable, healing from the snapshot", action="projection_heals", reason=reason)
        self.files.set_aside()
        try:
            if self.files.restore_snapshot():
                self._connect()
                return
        except duckdb.Error as error:
            self._disconnect()
            reason = str(error)
        self.start_over(f"no usable snapshot either: {reason}")

    def _connect(self) -> None:
        self._con = duckdb.connect(str(self.files.live), config=CONFIG)
        known = self._rows("SELECT table_name FROM duckdb_tables() WHERE table_name = 'meta'")
        if not known:
            self._transact([(statement, None) for statement in tables.create()])
        layout = self._rows("SELECT seq FROM meta WHERE k = 'layout'")[0][0]
        if layout != tables.LAYOUT:
            self.start_over(f"its layout is {layout}, this program's is {tables.LAYOUT}")
            return
        self._load()

    def _load(self) -> None:
        meta: dict[str, int] = dict(self._rows("SELECT k, seq FROM meta"))
        self.position, self.heartbeats = meta["events"], meta["heartbeats"]
        self._keys = Keys(KeyRow(*row) for row in self._rows("SELECT * FROM cell_key ORDER BY cid"))
        stale = self._rows(
            "SELECT DISTINCT k.cell FROM samples s JOIN cell_key k USING (cid) WHERE s.seq > ?", [meta["cells"]]
        )
        self._touched = {cell for (cell,) in stale}
        self.dirty = True

    def _disconnect(self) -> None:
        if self._con is not None:
            try:
                self._con.close()
            except duckdb.Error as error:
                log.warning("closing the live file failed", action="projection_close_failed", error=str(error))
            self._con = None

    # -- applying ----------------------------------------------------------------------------------------------------------

    def apply(self, messages: Sequence[StoredMessage]) -> None:
        """Append the rows of ``messages``, in stream order; those at or before ``position`` are passed over.

        Raises StoreError where the file, not a message, is the problem; ``reopen`` then.
        """
        fresh: list[StoredMessage] = []
        last = self.position
        for message in messages:  # a running watermark: duplicates within one batch must not pass either
            if message.seq > last:
                fresh.append(message)
                last = message.seq
        if fresh:
            self._apply(fresh)

    def _apply(self, messages: Sequence[StoredMessage], refused: str | None = None) -> None:
        batch = Batch(self._keys)
        for message in messages:
            if refused is None:
                batch.add(message)
            else:
                batch.park(message, refused)
        try:
            self._commit(batch, messages[-1].seq)
        except duckdb.Error as error:
            if not isinstance(error, REFUSED) or refused is not None:
                raise StoreError(f"cannot append to {self.files.live}: {error}") from error
            self._keys = Keys(KeyRow(*row) for row in self._rows("SELECT * FROM cell_key ORDER BY cid"))
            self._apply_halves(messages, str(error))

    def _apply_halves(self, messages: Sequence[StoredMessage], reason: str) -> None:
        """One message that DuckDB refuses must not stop the others: find it, and park it."""
        if len(messages) == 1:
            self._apply(messages, refused=reason)
            return
        middle = len(messages) // 2
        self._apply(messages[:middle])
        self._apply(messages[middle:])

    def _commit(self, batch: Batch, position: int) -> None:
        statements = appends(batch)
        statements.append(("UPDATE meta SET seq = ? WHERE k = 'events'", [position]))
        self._transact(statements)
        self.position = position
        self._touched |= batch.touched
        self.dirty = True

    def apply_heartbeats(self, rows: Sequence[HeartbeatRow], position: int) -> None:
        """Append minutes of heartbeats; ``position`` is the last HEARTBEATS sequence in them."""
        if position <= self.heartbeats:
            return
        statements: list[tuple[str, list[Any] | None]] = []
        if rows:
            statements.append((tables.append("heartbeats"), [_lines(rows)]))
        statements.append(("UPDATE meta SET seq = ? WHERE k = 'heartbeats'", [position]))
        try:
            self._transact(statements)
        except duckdb.Error as error:
            raise StoreError(f"cannot append heartbeats to {self.files.live}: {error}") from error
        self.heartbeats = position
        self.dirty = True

    # -- cells -------------------------------------------------------------------------------------------------------------

    @property
    def stale(self) -> bool:
        """Whether samples came in that the cells do not show yet."""
        return bool(self._touched)

    def refresh(self) -> int:
        """Recompute the touched cells; how many they were."""
        touched = sorted(self._touched)
        if touched:
            self._change(
                [
                    (cells_sql.FORGET, [touched]),
                    (cells_sql.REFRESH, [touched]),
                    ("UPDATE meta SET seq = ? WHERE k = 'cells'", [self.position]),
                ]
            )
            self._touched = set()
            self.dirty = True
        return len(touched)

    def unpublished(self) -> tuple[list[Cell], int]:
        """The cells that changed since ``mark_published``, and the position to mark once all of them are out."""
        meta: dict[str, int] = dict(self._rows("SELECT k, seq FROM meta"))
        found = self._rows("SELECT * EXCLUDE (cell) FROM cells WHERE last_seq > ?", [meta["published"]])
        return [cell_of(row) for row in found], meta["cells"]

    def mark_published(self, position: int) -> None:
        self._change([("UPDATE meta SET seq = ? WHERE k = 'published'", [position])])

    def cell_positions(self) -> list[tuple[CellKey, int]]:
        """Each cell's key and the last sample in it."""
        rows = self._rows("SELECT model, domain, worker, last_seq FROM cells")
        return [((model, domain, worker), last_seq) for model, domain, worker, last_seq in rows]

    def forget_heartbeats(self) -> None:
        """Start with the first heartbeat there is: the stream is another one."""
        self._change([("UPDATE meta SET seq = 0 WHERE k = 'heartbeats'", None)])
        self.heartbeats = 0

    def cells(self) -> list[Cell]:
        return [cell_of(row) for row in self._rows("SELECT * EXCLUDE (cell) FROM cells")]

    # -- snapshots and questions -------------------------------------------------------------------------------------------

    def snapshot(self) -> bool:
        """Publish what is committed as the snapshot; False where nothing changed since, or the moment is not good."""
        if not self.dirty:
            return False
        try:
            self._connection().execute("CHECKPOINT")
        except duckdb.TransactionException as error:
            log.info("snapshot skipped", action="snapshot_skipped", reason=str(error))
            return False
        except duckdb.Error as error:
            raise StoreError(f"cannot checkpoint {self.files.live}: {error}") from error
        self.files.publish_snapshot()
        self.dirty = False
        return True

    def ask(self, sql: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """The rows of a query of ours, each by column name. Never pass on SQL that somebody sent."""
        cursor = self._connection().execute(sql, list(parameters))
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    # -- one connection ----------------------------------------------------------------------------------------------------

    def _connection(self) -> duckdb.DuckDBPyConnection:
        if self._con is None:
            raise StoreError(f"{self.files.live} is not open")
        return self._con

    def _rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection().execute(sql, list(parameters)).fetchall()

    def _change(self, statements: Iterable[tuple[str, list[Any] | None]]) -> None:
        try:
            self._transact(statements)
        except duckdb.Error as error:
            raise StoreError(f"cannot write to {self.files.live}: {error}") from error

    def _transact(self, statements: Iterable[tuple[str, list[Any] | None]]) -> None:
        connection = self._connection()
        connection.begin()
        try:
            for sql, parameters in statements:
                connection.execute(sql, parameters)
            connection.commit()
        except BaseException:
            try:
                connection.rollback()
            except duckdb.Error as error:
                log.debug("rollback failed", action="rollback_failed", error=str(error))
            raise


def appends(batch: Batch) -> list[tuple[str, list[Any] | None]]:
    """The statements that append a batch's rows."""
    statements: list[tuple[str, list[Any] | None]] = []
    if batch.keys:
        columns = ", ".join(f"unnest(${n + 1}::{kind}[])" for n, kind in enumerate(tables.CELL_KEY.values()))
        statements.append((f"INSERT INTO cell_key SELECT {columns}", [list(c) for c in zip(*batch.keys, strict=True)]))
    for table, rows in (
        ("samples", batch.samples),
        ("task_facts", batch.facts),
        ("candidates", batch.candidates),
        ("worker_reports", batch.workers),
        ("judgements", batch.judgements),
        ("dead", batch.dead),
    ):
        if rows:
            statements.append((tables.append(table), [_lines(rows)]))
    return statements


def _lines(rows: Sequence[msgspec.Struct]) -> list[str]:
    """Each row as JSON: encoded at once and cut, which is cheaper than one by one; JSON has no newline inside a value."""
    return _encoder.encode_lines(rows).decode().split("\n")[:-1]
