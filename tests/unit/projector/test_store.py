"""The store on a real DuckDB file: exactly once, whatever the log repeats; bad events parked; files healed."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from schemas import codec
from schemas.errors import StoreError
from schemas.events import TaskCompleted
from services.projector.store import Store
from services.runtime.stored import StoredMessage
from support.builders import build
from support.folded import everything, expected, held, messages
from support.history import many

LOG = messages(many(1_500, tasks=300))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "projector").open()
    yield opened
    opened.close()


def finished(store: Store) -> Path:
    """Refreshed and closed: the live file may be read now."""
    store.refresh()
    store.close()
    return store.files.live


def event(seq: int, data: bytes, subject: str = "ev.x.y.z") -> StoredMessage:
    return StoredMessage(seq, subject, data, None, seq)


def test_the_tables_are_the_fold_of_the_log(store: Store) -> None:
    store.apply(LOG)
    assert held(finished(store)) == expected(LOG)


def test_repeats_and_batches_of_any_size_change_nothing(store: Store, tmp_path: Path) -> None:
    """R15: duplicated and re-delivered input, also within one batch."""
    rng = random.Random(5)
    start = 0
    while start < len(LOG):
        end = start + rng.randrange(1, 200)
        again = max(0, start - rng.randrange(50))
        store.apply(LOG[again:end] + LOG[again:end])
        if rng.random() < 0.3:
            store.refresh()
        start = end
    once = Store(tmp_path / "once").open()
    once.apply(LOG)
    assert everything(finished(store)) == everything(finished(once))


def test_what_was_committed_survives_and_the_rest_was_never_there(store: Store) -> None:
    store.apply(LOG[:700])
    store.reopen()
    assert store.position == 700
    store.apply(LOG)
    assert held(finished(store)) == expected(LOG)


def test_cells_left_unrefreshed_by_a_crash_are_refreshed_later(store: Store) -> None:
    store.apply(LOG[:700])
    store.refresh()
    store.apply(LOG[700:])
    store.reopen()
    assert store.stale
    assert held(finished(store))["cells"] == expected(LOG)["cells"]


def test_cells_stay_unpublished_until_marked(store: Store) -> None:
    store.apply(LOG)
    store.refresh()
    cells, position = store.unpublished()
    assert {cell.last_seq for cell in cells} and position == store.position
    store.reopen()
    assert store.unpublished()[0] == cells
    store.mark_published(position)
    assert store.unpublished()[0] == []


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"not json", "not an event"),
        (b'{"type":"task.vanished","id":"a","at":1,"by":"x"}', "version 1 is not known"),
        (b'{"type":"task.completed","v":99,"id":"a","at":1,"by":"x"}', "version 99 is not known"),
        (b'{"type":"task.completed","id":"a","at":1,"by":"x"}', "task.completed a"),
        (
            b'{"type":"quality.judged","id":"a","at":1,"by":"x","model":"m","domain":"d","source":"judge","value":3}',
            "value 3",
        ),
        (b"\xff\x00\xfe", "not an event"),
        (b"", "not an event"),
    ],
)
def test_what_cannot_be_used_is_parked_and_its_neighbours_are_not(store: Store, data: bytes, reason: str) -> None:
    """R16, R20: parked with its reason and counted, never dropped, and nothing stops."""
    good = codec.encode(build(TaskCompleted))
    store.apply([event(1, good), event(2, data), event(3, good)])
    (dead,) = store.ask("SELECT * FROM dead")
    assert dead["seq"] == 2
    assert reason in dead["reason"]
    assert store.ask("SELECT count(*) AS n FROM samples") == [{"n": 2}]
    assert store.position == 3


def test_strange_names_are_only_names(store: Store) -> None:
    for seq, name in enumerate(
        ("日本語", "a'b\"; DROP TABLE samples;--", "nul\x00nul", "\U0001f600", " ", "new\nline\u2028\x85"), start=1
    ):
        store.apply([event(seq, codec.encode(build(TaskCompleted, model=name, domain=name)))])
    store.refresh()
    assert {row["model"] for row in store.ask("SELECT model FROM cells")} >= {"日本語", "nul\x00nul"}
    assert len(store.cells()) == 6


def test_a_row_that_the_database_refuses_is_found_and_parked(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Store._commit

    def refusing(self: Store, batch: object, position: int) -> None:
        if any(row.seq == 40 for row in batch.facts + batch.samples):  # type: ignore[attr-defined]
            raise duckdb.ConversionException("cannot be a row")
        commit(self, batch, position)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "_commit", refusing)
    store.apply(LOG[:100])
    assert [(row["seq"], row["reason"]) for row in store.ask("SELECT * FROM dead")] == [(40, "cannot be a row")]
    assert store.position == 100
    assert store.ask("SELECT count(DISTINCT cid) = max(cid) AS dense FROM cell_key") == [{"dense": True}]


def test_a_full_disk_parks_nothing_and_is_raised(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Store, batch: object, position: int) -> None:
        raise duckdb.IOException("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "_commit", full)
        with pytest.raises(StoreError, match="No space left"):
            store.apply(LOG[:10])
    store.reopen()
    store.apply(LOG[:10])
    assert store.position == 10
    assert store.ask("SELECT * FROM dead") == []


def test_a_second_projector_on_the_directory_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="in use by another projector"):
        Store(store.files.directory).open()


def test_a_snapshot_is_the_file_as_it_was_and_is_made_only_when_something_changed(store: Store) -> None:
    store.apply(LOG)
    store.refresh()
    assert store.snapshot()
    assert not store.snapshot()
    assert held(store.files.snapshot) == expected(LOG)
    store.apply([event(LOG[-1].seq + 1, codec.encode(build(TaskCompleted)))])
    assert store.snapshot()


def test_nobody_can_open_the_live_file_while_the_store_has_it(store: Store) -> None:
    """The copy for a snapshot must not have dropped DuckDB's lock."""
    store.apply(LOG)
    store.snapshot()
    probe = f"import duckdb; duckdb.connect({str(store.files.live)!r}, read_only=True)"
    assert "Could not set lock" in _python(probe)


def test_a_corrupt_file_heals_from_the_last_snapshot(store: Store) -> None:
    store.apply(LOG[:1000])
    store.refresh()
    store.snapshot()
    store.apply(LOG[1000:])
    live = finished(store)
    _tear(live)
    healed = Store(store.files.directory).open()
    assert healed.position == 1000
    healed.apply(LOG)
    assert held(finished(healed)) == expected(LOG)


def test_a_torn_log_of_writes_heals_too(store: Store) -> None:
    store.apply(LOG[:1000])
    store.snapshot()
    store.apply(LOG[1000:1200])
    wal = Path(f"{store.files.live}.wal")
    torn, copy = wal.read_bytes(), store.files.live.parent / "copy"
    store.close()
    copy.mkdir()
    (copy / "live.duckdb").write_bytes(store.files.snapshot.read_bytes())
    (copy / "live.duckdb.wal").write_bytes(torn[: len(torn) // 2])
    healed = Store(copy).open()
    healed.apply(LOG)
    assert held(finished(healed)) == expected(LOG)


def test_without_a_usable_snapshot_the_log_is_replayed(store: Store) -> None:
    store.apply(LOG)
    store.snapshot()
    live = finished(store)
    _tear(live)
    _tear(store.files.snapshot)
    healed = Store(store.files.directory).open()
    assert healed.position == 0
    healed.apply(LOG)
    assert held(finished(healed)) == expected(LOG)


def test_a_file_of_another_layout_is_set_aside(store: Store) -> None:
    store.apply(LOG)
    store.close()
    with duckdb.connect(str(store.files.live)) as connection:
        connection.execute("UPDATE meta SET seq = 99999 WHERE k = 'layout'")
    other = Store(store.files.directory).open()
    assert other.position == 0
    assert store.files.aside.exists()
    other.close()


def _tear(file: Path) -> None:
    """Half of the metadata block overwritten: what a kill in the middle of a checkpoint can leave."""
    data = bytearray(file.read_bytes())
    data[12288 : 12288 + 131072] = b"\x5a" * 131072
    file.write_bytes(data)


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
