"""A task's story in words, for every way that it can go."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest

from schemas import events
from schemas.events import AnyEvent, TaskRouted
from schemas.parts import Options
from services.benchmarker.debts import Reason
from services.router.explain import explain_words, hold_words
from services.router.port import TaskStatus
from support.builders import DESK, LAPTOP, QWEN, TASK, build

NAMES = {DESK: "desk", LAPTOP: "laptop"}
SUBMITTED, ROUTED = build(events.TaskSubmitted), build(TaskRouted)
RELEASED, STARTED = build(events.TaskReleased), build(events.TaskStarted)


def explain(*known: AnyEvent, routed: TaskRouted | None = ROUTED, state: str = "completed", **status: Any) -> list[str]:
    task = msgspec.convert({"task": TASK, "state": state, **status}, TaskStatus)
    return explain_words(task, routed, known, NAMES)


def test_a_completed_task_is_told_from_the_question_to_the_answer() -> None:
    words = explain(SUBMITTED, ROUTED, RELEASED, STARTED, build(events.TaskCompleted))
    assert words[0].startswith(
        "A chat task in English of the domain code (by its words, confidence 0.90), about 200 tokens"
    )
    assert words[0].endswith("The client insists on context 8192.")
    assert words[1] == "qwen3:8b on desk was chosen: least cost."
    assert words[-4] == "It left the queue after 0.00 s, for whichever free machine takes it first, most likely desk."
    assert words[-3] == "It ran on desk."
    assert words[-2] == (
        "qwen3:8b on desk answered with 240 tokens in 3.25 s (reading the prompt 0.24 s, writing 3.00 s)."
    )
    assert words[-1] == "4.00 s had been predicted of desk; it took 3.25 s."


def test_the_most_that_may_be_answered_is_told_since_it_shortens_what_is_predicted() -> None:
    limited = msgspec.structs.replace(SUBMITTED, options=Options(max_tokens=20))
    assert "tokens long, at most 20 to answer, interactive." in explain(limited, ROUTED)[0]
    assert "to answer" not in explain(msgspec.structs.replace(SUBMITTED, options=Options()), ROUTED)[0]


def test_the_decision_is_told_once_whether_or_not_it_is_among_the_events() -> None:
    with_it, without = explain(SUBMITTED, ROUTED, STARTED), explain(SUBMITTED, STARTED)
    assert with_it == without
    assert sum("was chosen" in line for line in with_it) == 1


@pytest.mark.parametrize("purpose", get_args(events.Purpose))
@pytest.mark.parametrize("reason", [*get_args(Reason), "somebody asked"])
def test_bench_work_says_what_it_is_for_and_why_it_was_asked(purpose: events.Purpose, reason: str) -> None:
    bench = events.Bench(purpose=purpose, reason=reason)
    words = explain(msgspec.structs.replace(SUBMITTED, kind="bench", urgency="background", bench=bench))
    assert words[0].startswith("A bench task")
    assert ", because " in words[0] and "_" not in words[0].split(", because ")[1].split(".")[0]


def test_another_machine_than_expected_is_said_to_be_another() -> None:
    words = explain(RELEASED, build(events.TaskStarted, worker=LAPTOP), state="running", worker=LAPTOP)
    assert "It ran on laptop, not on desk as expected: laptop took it first." in words
    assert words[-1] == "Runs on laptop."
    assert explain(RELEASED, STARTED, state="running", worker=DESK, ran_s=4.0, ends_s=6.0)[-1] == (
        "Runs on desk for 4.00 s, about 6.00 s to go."
    )
    late = explain(RELEASED, STARTED, state="running", worker=DESK, ran_s=22.0, ends_s=3.3, late_s=12.0)
    assert late[-1] == "Runs on desk for 22 s, 12 s longer than predicted."


def test_a_lane_a_changed_model_and_a_hold_are_told() -> None:
    released = build(
        events.TaskReleased,
        lane=DESK,
        model="llama",
        reason="nobody holds qwen3:8b any more",
        held_s={"model_full": 2.5},
        waited_s=2.5,
        bypasses=2,
    )
    assert explain(released)[-1] == (
        "It left the queue after 2.50 s, for desk alone. "
        "It had waited because as many tasks of this model run as may (2.50 s). "
        "The model is llama: nobody holds qwen3:8b any more. 2 later tasks went first."
    )


def test_another_machine_than_at_first_is_no_other_model() -> None:
    released = build(
        events.TaskReleased, lane=LAPTOP, expected_worker=LAPTOP, reason=f"{QWEN} on desk would cost 0.5 s more now"
    )
    assert "It is another machine than at first: qwen3:8b on desk would cost 0.5 s more now." in explain(released)[-1]


@pytest.mark.parametrize("failure", events.FailureClass.__args__)  # type: ignore[attr-defined]
def test_every_class_of_failure_has_words(failure: events.FailureClass) -> None:
    words = explain(build(events.AttemptFailed, failure=failure, retryable=failure != "rejected"), state="failed")
    assert words[-1].startswith("Attempt 1 failed on desk after 17 tokens: ")
    assert words[-1].endswith("not tried again." if failure == "rejected" else "may be tried again.")
    assert failure not in ("oom", "fenced") or failure not in words[-1]


def test_the_other_ends_are_told_with_their_reasons() -> None:
    assert explain(build(events.TaskFailed), state="failed")[-1] == (
        "Failed after one attempt: the backend refused the request (the backend refused: context too large)."
    )
    nobody = "nobody who holds m was there within 31 s (desk left 2 min ago)"
    assert explain(build(events.TaskFailed, failure="busy", attempts=0, detail=nobody), state="failed")[-1] == (
        f"Failed before it ran anywhere: {nobody}."
    )
    late = build(
        events.TaskFailed, failure="busy", attempts=1, detail="nobody was free for it within its deadline of 9 s"
    )
    assert explain(late, state="failed")[-1] == (
        "Failed after one attempt: nobody was free for it within its deadline of 9 s."
    )
    cannot = build(events.TaskFailed, attempts=0, detail="no machine can answer it (desk: m takes no tools)")
    assert "Failed before it ran anywhere: no machine can answer it" in explain(cannot, state="failed")[-1]
    assert explain(build(events.TaskCancelled), state="cancelled")[-1] == "Cancelled (the last reader left)."
    assert explain(build(events.TaskDead), state="dead")[-1].startswith("Given up after 3 attempts (the stream stood")


@pytest.mark.parametrize("outcome", ["empty", "truncated", "substituted", "wrong_language"])
def test_an_answer_that_is_none_is_not_told_as_a_success(outcome: str) -> None:
    answered = next(line for line in explain(build(events.TaskCompleted, outcome=outcome)) if "answered with" in line)
    assert not answered.endswith("s).")


def test_missing_numbers_are_said_to_be_unknown() -> None:
    silent = build(events.TaskCompleted, tokens=events.Tokens(), times=events.Times())
    assert f"{QWEN} on desk answered with an unknown number of tokens in an unknown time." in explain(silent)


def test_a_waiting_task_says_why_where_and_how_long() -> None:
    words = explain(
        SUBMITTED, state="waiting", reason="busy: all 2 machines with qwen3 are busy", position=3, eta_s=12.0
    )
    assert words[-1] == (
        "Waits: every machine that could answer is busy (all 2 machines with qwen3 are busy). Position 3. "
        "About 12 s to go."
    )
    assert explain(SUBMITTED, routed=None, state="waiting")[-2:] == [
        "The model is not chosen yet.",
        "Waits: the model is being chosen.",
    ]


def test_a_released_task_says_whom_it_waits_for() -> None:
    assert explain(state="released", expected_worker=DESK)[-1] == "Released, not started yet on desk."


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("model_full: qwen3 has 2 running", "Waits: as many tasks of this model run as may (qwen3 has 2 running)."),
        (
            "busy: every machine that could answer is busy; desk is free in about 2 s",
            "Waits: every machine that could answer is busy; desk is free in about 2 s.",
        ),
        ("waiting_for_faster(desk, 4)", "Waits: a faster machine is worth waiting for."),
        ("no_worker", "Waits: no machine that holds the model is there."),
        ("something new: the words", "Waits: the words."),
        ("odd", "Waits: odd."),
    ],
)
def test_a_holds_code_becomes_a_sentence(reason: str, words: str) -> None:
    assert hold_words(reason) == words


def test_a_task_of_which_little_is_known_still_has_words() -> None:
    assert explain(routed=None) == ["The decision is not known here."]
    assert explain(routed=build(TaskRouted, candidates=(), choice=None, removed=()))[0].startswith("Nobody could be")


def test_a_route_that_was_asked_for_is_named_and_a_machine_by_its_name() -> None:
    asked = build(events.TaskSubmitted, wants=events.Wants(route="canary"))
    assert explain(asked)[0].endswith(" The client asked for route canary.")
    asked = build(events.TaskSubmitted, wants=events.Wants(route="auto"))
    assert explain(asked)[0].endswith(" Model and machine are the router's choice.")
    asked = build(events.TaskSubmitted, wants=events.Wants(worker=DESK, route="canary"))
    assert explain(asked)[0].endswith(" The client asked for route canary. The client insists on worker desk.")


def test_a_task_that_ended_before_anybody_was_chosen_says_so() -> None:
    words = explain(SUBMITTED, build(events.TaskCancelled), routed=None, state="cancelled")
    assert words[1] == "Nobody was chosen before it ended."


def test_a_window_that_is_insisted_on_and_one_that_is_wished_for_are_told_apart() -> None:
    firm = explain(build(events.TaskSubmitted, wants=events.Wants(context=8192)))[0]
    assert firm.endswith(" The client insists on context 8192.")
    wish = explain(build(events.TaskSubmitted, wants=events.Wants(context=8192, context_flexible=True)))[0]
    assert wish.endswith(" Model and machine are the router's choice. It would like a window of 8192 tokens.")
