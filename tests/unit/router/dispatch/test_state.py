"""Which of two conflicting facts counts, by the order of the stream alone."""

from __future__ import annotations

import pytest

from schemas import events
from schemas.events import AnyEvent
from services.router.dispatch.state import EARLY, RECENT, RouterState, fold, served
from support.builders import DESK, LAPTOP, TASK, build


def log(*told: AnyEvent) -> RouterState:
    state = RouterState()
    for seq, event in enumerate(told, 1):
        fold(state, event, seq, seq * 1_000_000)
    return state


def released(attempt: int = 1, epoch: int = 1, **fields: object) -> AnyEvent:
    return build(events.TaskReleased, attempt=attempt, epoch=epoch, **fields)


ELECTED, SUBMITTED, RELEASED = build(events.DispatcherElected, epoch=1), build(events.TaskSubmitted), released()
STARTED, COMPLETED = build(events.TaskStarted), build(events.TaskCompleted)
CANCELLED = build(events.TaskCancelled)
LOST = build(events.AttemptFailed, failure="lost", epoch=1, boot=None)
REVOKED = build(events.AttemptFailed, failure="not_started", epoch=1, boot=None)


def test_a_live_attempt_holds_its_permits_from_its_release_to_its_end() -> None:
    assert log(ELECTED, SUBMITTED).held == {}
    assert log(ELECTED, SUBMITTED, RELEASED).held
    for end in (LOST, COMPLETED, REVOKED):
        assert log(ELECTED, SUBMITTED, RELEASED, end).held == {}


def test_the_first_terminal_fact_stands_for_ever() -> None:
    state = log(ELECTED, SUBMITTED, RELEASED, STARTED, COMPLETED, CANCELLED)
    assert isinstance(state.recent[TASK].terminal, events.TaskCompleted)
    state = log(ELECTED, SUBMITTED, RELEASED, STARTED, CANCELLED, COMPLETED)
    task = state.task(TASK)
    assert task is not None and isinstance(task.terminal, events.TaskCancelled)
    assert (state.second_ends, state.held) == (1, {})


def test_an_attempt_that_runs_after_the_tasks_end_keeps_its_permits_until_its_own() -> None:
    running = (ELECTED, SUBMITTED, RELEASED, STARTED, CANCELLED)
    assert TASK in log(*running).tasks and log(*running).held
    assert log(*running, build(events.AttemptFailed, failure="fenced")).held == {}


def test_a_start_of_a_revoked_attempt_is_ignored() -> None:
    state = log(ELECTED, SUBMITTED, RELEASED, REVOKED, STARTED)
    task = state.tasks[TASK]
    assert (task.live, task.attempts[1].started, task.next_attempt, task.failures) == (None, False, 2, ())


def test_a_completion_of_a_lost_attempt_still_ends_the_task() -> None:
    state = log(ELECTED, SUBMITTED, RELEASED, STARTED, LOST, released(2), COMPLETED)
    task = state.tasks[TASK]
    assert isinstance(task.terminal, events.TaskCompleted)
    assert task.live is not None and task.live.n == 2  # still to be taken back


def test_a_release_of_an_older_epoch_is_refused_and_burns_its_number() -> None:
    later = build(events.DispatcherElected, epoch=2)
    state = log(ELECTED, SUBMITTED, later, RELEASED)
    assert (state.tasks[TASK].attempts, state.tasks[TASK].next_attempt, state.refused) == ({}, 2, 1)
    assert state.held == {}


@pytest.mark.parametrize("again", [1, 2])
def test_a_release_while_another_is_live_is_refused(again: int) -> None:
    state = log(ELECTED, SUBMITTED, RELEASED, released(again))
    assert (list(state.tasks[TASK].attempts), state.refused) == ([1], 1)


def test_an_older_routers_word_that_an_attempt_is_lost_is_refused() -> None:
    later = build(events.DispatcherElected, epoch=2)
    assert log(ELECTED, SUBMITTED, RELEASED, STARTED, later, LOST).tasks[TASK].live is not None


def test_events_at_or_below_the_position_change_nothing() -> None:
    state = log(ELECTED, SUBMITTED, RELEASED)
    held = dict(state.held)
    fold(state, released(2), 2, 0)
    assert (state.held, state.position) == (held, 3)


def test_only_the_boot_that_reported_can_leave() -> None:
    report = build(events.WorkerReported, boot="b2")
    assert not log(report, build(events.WorkerLeft, boot="b1")).workers[DESK].left
    assert log(report, build(events.WorkerLeft, boot="b2")).workers[DESK].left
    assert not log(report, build(events.WorkerLeft, boot="b2"), report).workers[DESK].left


def test_a_start_frees_the_backends_of_the_other_holders() -> None:
    names = (f"backend:{DESK}", f"backend:{LAPTOP}")
    state = log(ELECTED, SUBMITTED, released(permits=("model:m", *names)), STARTED)
    assert state.held == {"model:m": 1, names[0]: 1}


def test_the_past_is_bounded() -> None:
    state = RouterState()
    for n in range(RECENT + 5):
        fold(state, build(events.TaskSubmitted, task=f"t{n}"), 2 * n + 1, 0)
        fold(state, build(events.TaskCancelled, task=f"t{n}"), 2 * n + 2, 0)
    assert (len(state.recent), state.tasks, state.ended) == (RECENT, {}, RECENT + 5)
    assert state.task("t0") is None and state.task(f"t{RECENT}") is not None


def test_every_fact_of_a_task_can_be_found_again() -> None:
    assert log(ELECTED, SUBMITTED, RELEASED, STARTED, COMPLETED).recent[TASK].seqs == [2, 3, 4, 5]


def test_a_worker_serves_what_it_supports_and_embeddings() -> None:
    models = tuple(
        events.ModelInfo(name=need, backend_name=need, capability=need)
        for need in ("cpu_inference", "gpu_inference", "embedding")
    )
    report = build(events.WorkerReported, models=models, supports=("cpu_inference",))
    assert [info.name for info in served(report)] == ["cpu_inference", "embedding"]


def test_a_decision_stored_before_its_task_counts_as_soon_as_the_task_is_there() -> None:
    routed = build(events.TaskRouted)
    late, early = log(ELECTED, SUBMITTED, routed).tasks[TASK], log(ELECTED, routed, SUBMITTED)
    task = early.tasks[TASK]
    assert (task.choice, task.models) == (late.choice, late.models)
    assert (task.routed_seq, sorted(task.seqs), early.early) == (2, [2, 3], {})


def test_decisions_without_a_task_do_not_pile_up() -> None:
    state = log(*(build(events.TaskRouted, id=f"r{n}", task=f"t{n}") for n in range(EARLY + 5)))
    assert len(state.early) == EARLY
