"""Where a task's facts lie: all of its life, and of what people said of it each one's last word, however often they said it."""

from __future__ import annotations

from pathlib import Path

from schemas import codec
from schemas.events import Event, QualityJudged, TaskCompleted, TaskSubmitted
from services.projector.answers import EVENTS_MAX, _look_up
from services.projector.store import Store
from services.runtime.stored import StoredMessage
from support.builders import build


def word(n: int, client: str) -> Event:
    return build(
        QualityJudged, id=f"word{n}", source="thumb", client=client, value=float(n % 2), peer=None, tasks=("t1",)
    )


def looked_up(tmp_path: Path, facts: list[Event]) -> tuple[bool, list[int]]:
    store = Store(tmp_path / "projector").open()
    try:
        store.apply([StoredMessage(n, "ev.x", codec.encode(f), None, n * 1_000_000) for n, f in enumerate(facts, 1)])
        return _look_up(store, "t1")
    finally:
        store.close()


def test_the_last_word_of_whoever_changed_his_mind_for_ever_is_found_and_so_is_everybody_elses(tmp_path: Path) -> None:
    flips = 2 * EVENTS_MAX
    ran = [build(TaskSubmitted, task="t1"), build(TaskCompleted, task="t1")]
    found, seqs = looked_up(tmp_path, [*ran, word(0, "you"), *(word(n, "me") for n in range(flips))])
    assert found
    assert seqs[:3] == [1, 2, 3]
    assert seqs[-1] == 3 + flips
    assert len(seqs) < 10


def test_a_task_that_is_only_spoken_of_is_unknown(tmp_path: Path) -> None:
    assert looked_up(tmp_path, [word(1, "me")]) == (False, [])
