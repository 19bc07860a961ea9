"""Which rows an event is, and that what nobody measured stays NULL all the way into the tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas import codec, events
from schemas.events import Event
from services.projector.rows import CandidateRow, DeadRow, FactRow, SampleRow, WorkerRow
from services.projector.store import Store
from services.projector.tables import CANDIDATES, DEAD, FACTS, SAMPLES, WORKERS
from services.runtime.stored import StoredMessage
from support.builders import DESK, LLAMA, QWEN, build


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "projector").open()
    yield opened
    opened.close()


def tell(store: Store, *told: Event) -> None:
    start = store.position
    store.apply(
        [
            StoredMessage(start + n, "ev.test", codec.encode(event), None, (start + n) * 1_000_000)
            for n, event in enumerate(told, start=1)
        ]
    )


@pytest.mark.parametrize(
    ("row", "columns"),
    [(SampleRow, SAMPLES), (FactRow, FACTS), (CandidateRow, CANDIDATES), (WorkerRow, WORKERS), (DeadRow, DEAD)],
)
def test_rows_and_tables_have_the_same_columns(row: type, columns: dict[str, str]) -> None:
    assert set(row.__struct_fields__) == set(columns)  # type: ignore[attr-defined]


def test_a_task_is_one_row_whatever_happened_to_it(store: Store) -> None:
    tell(
        store,
        build(events.TaskSubmitted, task="t1", client="me"),
        build(events.TaskRouted, task="t1"),
        build(events.TaskReleased, task="t1", attempt=1, model=QWEN, waited_s=0.5),
        build(events.TaskStarted, task="t1", attempt=1, worker="lap"),
    )
    (running,) = store.ask("SELECT * FROM tasks")
    assert (running["state"], running["worker"], running["waited_s"], running["starts"]) == ("running", "lap", 0.5, 1)
    tell(store, build(events.AttemptFailed, task="t1", attempt=1, worker="lap", failure="stall"))
    assert store.ask("SELECT state FROM tasks") == [{"state": "waiting"}]
    tell(
        store,
        build(events.TaskReleased, task="t1", attempt=2, model=QWEN),
        build(events.TaskStarted, task="t1", attempt=2, worker=DESK),
        build(events.TaskCompleted, task="t1", attempt=2, worker=DESK, model=QWEN, outcome="ok"),
    )
    (row,) = store.ask("SELECT * FROM tasks")
    assert (row["state"], row["worker"], row["attempt"], row["starts"]) == ("completed", DESK, 2, 2)
    assert (row["client"], row["outcome"], row["failure"]) == ("me", "ok", "stall")
    assert row["total_s"] == 7.0


def test_the_first_terminal_fact_stands(store: Store) -> None:
    tell(
        store,
        build(events.TaskSubmitted, task="t1"),
        build(events.TaskCancelled, task="t1", reason="client left"),
        build(events.TaskCompleted, task="t1"),
    )
    assert store.ask("SELECT state, reason, ended_seq FROM tasks") == [
        {"state": "cancelled", "reason": "client left", "ended_seq": 2}
    ]


def test_each_candidate_and_each_removal_of_a_decision_is_a_row(store: Store) -> None:
    routed = build(events.TaskRouted, task="t1")
    assert routed.candidates and routed.removed
    tell(store, routed)
    rows = store.ask("SELECT * FROM candidates ORDER BY rank NULLS LAST")
    assert len(rows) == len(routed.candidates) + len(routed.removed)
    best, first = rows[0], routed.candidates[0]
    assert (best["rank"], best["model"], best["worker"], best["cost_s"]) == (1, first.model, first.worker, first.cost_s)
    assert (best["decode_tps"], best["decode_level"], best["decode_n"]) == (
        first.decode.value,
        first.decode.level,
        first.decode.n,
    )
    assert rows[-1]["removed"] == routed.removed[-1].reason
    assert rows[-1]["cost_s"] is None


def test_a_worker_is_its_last_report_and_whether_it_left(store: Store) -> None:
    report = build(events.WorkerReported, worker="w1", name="desk")
    tell(store, report, build(events.WorkerReported, worker="w1", name="desk 2"))
    (row,) = store.ask("SELECT * FROM workers")
    assert (row["name"], row["left"], row["slots"]) == ("desk 2", False, report.slots)
    assert [model["name"] for model in row["models"]] == [model.name for model in report.models]
    tell(store, build(events.WorkerLeft, worker="w1", reason="drained"))
    (row,) = store.ask("SELECT * FROM workers")
    assert (row["name"], row["left"], row["reason"]) == ("desk 2", True, "drained")


def test_what_a_completion_did_not_measure_is_null_in_every_table(store: Store) -> None:
    bare = build(
        events.TaskCompleted,
        tokens=events.Tokens(),
        times=events.Times(),
        digest=None,
        quantisation=None,
        model_bytes=None,
        language=None,
        context=None,
        resident=None,
        others_use=None,
        gpu=None,
        backend=None,
        finish_reason=None,
        prompt_chars=None,
    )
    tell(store, bare)
    store.refresh()
    (row,) = store.ask("SELECT * FROM samples JOIN cell_key USING (cid)")
    measured = [name for name in SAMPLES if name.endswith(("_us", "_tok", "_u")) and name != "at_us"]
    unmeasured = [
        *measured,
        "digest",
        "quantisation",
        "model_bytes",
        "language",
        "context",
        "resident",
        "gpu",
        "backend",
    ]
    assert {name: row[name] for name in unmeasured} == dict.fromkeys(unmeasured)
    (speed,) = store.ask("SELECT * FROM speed")
    derived = [name for name in speed if name.endswith(("_tps", "_s", "_p50", "_p95", "_tokens"))]
    assert len(derived) > 10
    assert {name: speed[name] for name in derived} == dict.fromkeys(derived)
    assert (speed["decode_n"], speed["ok_n"]) == (0, 1)


def test_an_imported_event_keeps_the_time_that_it_had_first(store: Store) -> None:
    done = codec.encode(build(events.TaskCompleted))
    store.apply([StoredMessage(1, "ev.test", done, {"Headrace-At": "1234567", "Headrace-Seq": "9"}, 99_000_000)])
    store.apply([StoredMessage(2, "ev.test", done, {"Headrace-At": "soon"}, 99_000_000)])
    assert store.ask("SELECT seq, at_us FROM samples") == [{"seq": 1, "at_us": 1_234_567}]
    assert [row["seq"] for row in store.ask("SELECT seq FROM dead")] == [2]


def test_judgements_are_shown_by_source_and_pairs_from_both_sides(store: Store) -> None:
    of_llama = {"model": LLAMA, "peer": QWEN, "domain": "code", "source": "judge", "digest": None, "worker": DESK}
    of_qwen = {**of_llama, "model": QWEN, "peer": LLAMA, "worker": "lap"}
    thumb = {"model": QWEN, "domain": "code", "source": "thumb", "client": "me", "tasks": ("t1",), "worker": "lap"}
    unheard = {**of_qwen, "weight": 0.0}
    alone = {"peer": None, "judge": None, "digest": None}
    tell(
        store,
        *(build(events.QualityJudged, value=won, **of_llama) for won in (1.0, 0.5)),
        *(build(events.QualityJudged, value=won, **of_qwen) for won in (0.0, 0.5)),
        build(events.QualityJudged, value=0.5, **unheard),
        *(build(events.QualityJudged, value=value, **alone, **thumb) for value in (0.0, 1.0)),
    )
    store.refresh()
    pairs = store.ask("SELECT model, peer, n, wins FROM pairs ORDER BY model")
    assert pairs == [
        {"model": LLAMA, "peer": QWEN, "n": 2, "wins": 1.5},
        {"model": QWEN, "peer": LLAMA, "n": 2, "wins": 0.5},
    ]
    counts = "judge_n, check_n, thumb_n, signal_n, void_n, pairs_n"
    (qwen,) = store.ask(f"SELECT n, quality, {counts} FROM quality WHERE model = $1", [QWEN])
    assert list(qwen.values()) == [1, 1.0, 2, 0, 1, 0, 1, 2]
