"""Minutes of heartbeats: what no beat could read stays unknown, and a minute in two writes adds up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from schemas import codec, events
from services.projector.heartbeats import minutes
from services.projector.store import Store
from services.runtime.stored import StoredMessage
from support.builders import build


def beat(seq: int, at_s: float, **fields: Any) -> StoredMessage:
    event = build(events.WorkerLoad, worker="w1", **fields)
    return StoredMessage(seq, "hb.w1", codec.encode(event), None, int(at_s * 1e6))


BLIND = {
    "cpu_use": None,
    "cpu_pressure": None,
    "ram_available_bytes": None,
    "gpus": None,
    "others_use": None,
    "backend_up": None,
    "credit": None,
}


def test_a_minute_is_means_and_extremes_over_the_beats_that_could_read(tmp_path: Path) -> None:
    store = Store(tmp_path).open()
    log = [
        beat(1, 60, **{**BLIND, "cpu_use": 0.5, "others_use": 0.25}),
        beat(2, 65, **{**BLIND, "cpu_use": 1.0}),
        beat(3, 119, **BLIND),
        beat(4, 120, **BLIND),
    ]
    store.apply_heartbeats(minutes(log[:1]), 1)
    store.apply_heartbeats(minutes(log[1:]), 4)
    first, second = store.ask("SELECT * FROM heartbeats_1m ORDER BY minute")
    store.close()
    assert (first["beats"], first["cpu_use"], first["cpu_use_max"], first["others_use"]) == (3, 0.75, 1.0, 0.25)
    assert second["beats"] == 1
    unknown = [name for name in second if name not in ("minute", "worker", "beats")]
    assert {name: second[name] for name in unknown} == dict.fromkeys(unknown)


def test_a_write_that_is_repeated_counts_once(tmp_path: Path) -> None:
    store = Store(tmp_path).open()
    for _ in range(2):
        store.apply_heartbeats(minutes([beat(1, 60), beat(2, 65)]), 2)
    assert [row["beats"] for row in store.ask("SELECT beats FROM heartbeats_1m")] == [2]
    store.close()


def test_what_is_no_heartbeat_is_passed_over() -> None:
    assert minutes([StoredMessage(1, "hb.w1", b"rubbish", None, 1)]) == []
