"""The seeded log obeys the protocol; else whatever is tested with it would be tested with nonsense."""

from __future__ import annotations

from collections import defaultdict

import pytest

from schemas import codec, events
from support.history import Entry, encoded, history, many

LOG = list(history(2, 600))


def told_of_tasks() -> dict[str, list[events.Event]]:
    lives: defaultdict[str, list[events.Event]] = defaultdict(list)
    for _, _, event in LOG:
        if task := getattr(event, "task", None):
            lives[task].append(event)
    return lives


def test_the_same_seed_tells_the_same_log_and_another_seed_another() -> None:
    assert list(history(2, 50)) == list(history(2, 50))
    assert list(history(2, 50)) != list(history(3, 50))


def test_order_is_the_sequence_and_time_never_runs_back() -> None:
    assert [entry.seq for entry in LOG] == list(range(1, len(LOG) + 1))
    assert [entry.at_us for entry in LOG] == sorted(entry.at_us for entry in LOG)


def test_every_task_ends_once_and_as_its_last_fact() -> None:
    lives = told_of_tasks()
    assert len(lives) == 600
    for life in lives.values():
        assert [isinstance(event, events.Terminal) for event in life] == [False] * (len(life) - 1) + [True]
        assert [type(event) for event in life[:3]] == [events.TaskSubmitted, events.TaskRouted, events.TaskReleased]


def test_an_attempt_starts_after_its_release_and_only_unless_it_was_revoked() -> None:
    for life in told_of_tasks().values():
        released = [event.attempt for event in life if isinstance(event, events.TaskReleased)]
        started = [event.attempt for event in life if isinstance(event, events.TaskStarted)]
        failed = {event.attempt: event.failure for event in life if isinstance(event, events.AttemptFailed)}
        assert released == list(range(1, len(released) + 1))
        assert not [attempt for attempt in started if failed.get(attempt) == "not_started"]
        assert set(started) <= set(released)


def test_everything_that_may_happen_happens_to_somebody() -> None:
    happened = {type(entry.event) for entry in LOG}
    only_elsewhere = {
        events.WorkerLoad,
        events.WorkerLeft,
        events.WorkerPaused,
        events.WorkerResumed,
        events.BenchCompleted,
        events.TaskFailed,
    }
    assert happened == set(events.EVENT_TYPES) - only_elsewhere


@pytest.mark.parametrize("count", [1, 700, 5_000])
def test_many_are_as_many_each_with_its_own_id(count: int) -> None:
    log = list(many(count, tasks=100))
    assert [each.seq for each in log] == list(range(1, count + 1))
    assert len({each.msg_id for each in log}) == count
    assert [each.at_us for each in log] == sorted(each.at_us for each in log)


def test_many_begin_like_the_history_that_they_repeat() -> None:
    first = [codec.decode(each.data) for each in many(50, seed=4, tasks=100)]
    told = [codec.decode(each.data) for each in encoded(Entry(*entry) for entry in history(4, 100))][:50]
    assert [type(event) for event in first] == [type(event) for event in told]
    assert all(isinstance(event, events.Event) for event in first)
