from __future__ import annotations

import pytest

from schemas import events
from schemas.events import Prediction, Times
from services.router import tally as module
from services.router.tally import OTHER, RATIOS, Tally
from support.builders import DESK, LAPTOP, QWEN, TASK, build

PREDICTED = Prediction(wait_s=3.0, load_s=1.0, prefill_s=0.5, decode_s=0.5, sharing_s=0.0, total_s=5.0)


def released(**fields: object) -> events.TaskReleased:
    return build(
        events.TaskReleased,
        **{"attempt": 1, "model": QWEN, "lane": "any", "expected_worker": DESK, "predicted": PREDICTED, **fields},
    )


def completed(worker: str, total_s: float | None) -> events.TaskCompleted:
    return build(events.TaskCompleted, attempt=1, worker=worker, model=QWEN, times=Times(total_s=total_s))


def test_a_prediction_is_compared_without_the_wait_with_what_its_machine_took() -> None:
    tally = Tally()
    tally.tell(released())
    tally.tell(completed(DESK, 2.2))
    ratios = tally.ratios[DESK, QWEN]
    assert (ratios.predicted_s, ratios.observed_s, ratios.sum) == (2.0, 2.2, pytest.approx(1.1))
    assert ratios.counts[RATIOS.index(1.15)] == 1
    assert sum(ratios.counts) == 1


@pytest.mark.parametrize(("worker", "total_s"), [(LAPTOP, 2.0), (DESK, None), (DESK, 0.0)])
def test_another_machine_or_an_unknown_time_says_nothing_about_a_prediction(worker: str, total_s: float | None) -> None:
    tally = Tally()
    tally.tell(released())
    tally.tell(completed(worker, total_s))
    assert tally.ratios == {}
    assert tally.ends == {"completed": 1}


def test_an_answer_to_a_release_of_before_the_start_says_nothing_about_a_prediction() -> None:
    tally = Tally()
    tally.tell(completed(DESK, 2.0))
    assert tally.ratios == {}


def test_a_start_elsewhere_is_a_deviation_with_both_machines_and_one_as_planned_is_none() -> None:
    tally = Tally()
    tally.tell(released())
    assert tally.tell(build(events.TaskStarted, attempt=1, worker=DESK, model=QWEN)) is None
    deviation = tally.tell(build(events.TaskStarted, attempt=1, worker=LAPTOP, model=QWEN))
    assert deviation is not None
    assert (deviation.task, deviation.planned, deviation.served) == (TASK, DESK, LAPTOP)
    assert (tally.releases, tally.deviations) == ({QWEN: 1}, {QWEN: 1})


def test_failures_are_counted_by_class_and_ends_by_kind() -> None:
    tally = Tally()
    for failure in ("stall", "stall", "oom"):
        tally.tell(build(events.AttemptFailed, attempt=1, failure=failure))
    for end in (events.TaskFailed, events.TaskCancelled, events.TaskDead):
        tally.tell(build(end))
    assert tally.failures == {"stall": 2, "oom": 1}
    assert tally.ends == {"failed": 1, "cancelled": 1, "dead": 1}


def test_the_number_of_labels_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAIRS_MOST", 2)
    tally = Tally()
    for n in range(5):
        tally.tell(released(model=f"m{n}", task=f"t{n}"))
        done = build(
            events.TaskCompleted, task=f"t{n}", attempt=1, worker=DESK, model=f"m{n}", times=Times(total_s=1.0)
        )
        tally.tell(done)
    assert set(tally.releases) == {"m0", "m1", "other"}
    assert set(tally.ratios) == {(DESK, "m0"), (DESK, "m1"), OTHER}


def test_released_attempts_that_never_end_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPEN_MOST", 1)
    tally = Tally()
    tally.tell(released(task="t1"))
    tally.tell(released(task="t2"))
    assert tally.tell(build(events.TaskStarted, task="t1", attempt=1, worker=LAPTOP, model=QWEN)) is None
    assert tally.tell(build(events.TaskStarted, task="t2", attempt=1, worker=LAPTOP, model=QWEN)) is not None
