"""services.router.signals: what speaks against an answer without anybody saying so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schemas.events import Options, TaskCompleted, Tokens, Wants
from schemas.work import Body
from services.router import signals
from services.router.port import NewTask
from services.router.signals import AGAIN_MOST, AGAIN_S, ROOM_TOKENS, Repeats, signal_event, signal_of, words_of
from support import builders


def ended(**fields: Any) -> TaskCompleted:
    return msgspec.structs.replace(builders.build(TaskCompleted), **fields)


@pytest.mark.parametrize(
    ("outcome", "signal"),
    [
        ("ok", None), ("empty", "empty"), ("truncated", "cut_off"), ("wrong_language", "wrong_language"),
        ("substituted", "other_model"),
    ],
)  # fmt: skip
def test_an_outcome_speaks_against_its_answer_unless_it_is_a_good_one(outcome: str, signal: str | None) -> None:
    assert signal_of(ended(outcome=outcome)) == signal


@pytest.mark.parametrize(
    ("context", "prompt", "output", "signal"),
    [
        (256, 44, 212, None),  # llama.cpp's own figures
        (256, 44, 212 - ROOM_TOKENS, None),
        (256, 44, 211 - ROOM_TOKENS, "cut_off"),
        (256, 44, 2_560, None),  # Ollama goes on in a full window, up to ten times its length
        (None, 44, 212, None), (256, None, 212, None), (256, 44, None, None),
    ],
)  # fmt: skip
def test_a_cut_speaks_against_its_answer_only_where_the_window_is_known_to_have_had_room(
    context: int | None, prompt: int | None, output: int | None, signal: str | None
) -> None:
    end = ended(
        outcome="truncated", finish_reason="length", context=context, tokens=Tokens(prompt=prompt, output=output)
    )
    assert signal_of(end) == signal


@pytest.mark.parametrize("kind", ["bench", "embedding"])
def test_bench_work_is_left_to_its_checks_and_judges(kind: str) -> None:
    assert signal_of(ended(outcome="empty", kind=kind)) is None


def test_a_signal_is_a_fact_against_whoever_answered_and_calls_itself_weak() -> None:
    end = ended(outcome="empty")
    event = signal_event(end, "empty", cause=end.id, envelope={"id": "s1", "at": 1.0, "by": "r1"})
    assert (event.source, event.signal, event.value, event.weight) == ("signal", "empty", 0.0, 1.0)
    assert (event.model, event.digest, event.quantisation, event.domain, event.worker, event.tasks) == (
        end.model, end.digest, end.quantisation, end.domain, end.worker, (end.task,),
    )  # fmt: skip
    for signal in (*signals.WORDS, "a new one"):
        assert words_of(signal).endswith(": weak evidence against it")


def new(text: str = "hi", **fields: Any) -> NewTask:
    return NewTask(body=Body(prompt=text), **fields)


class Asking:
    """Somebody asks, at times of the test's choice."""

    def __init__(self) -> None:
        self.repeats = Repeats(b"salt")
        self.count = 0

    def ask(self, asked: NewTask, now: float, *, ends: bool = True) -> str | None:
        digest = self.repeats.digest(asked)
        if digest is None:
            return None
        earlier = self.repeats.earlier(digest, now)
        self.count += 1
        self.repeats.remember(digest, f"t{self.count}", now)
        if ends:
            self.repeats.completed(f"t{self.count}", now)
        return earlier


def test_the_same_again_at_once_speaks_against_the_first_answer() -> None:
    asking = Asking()
    assert asking.ask(new(), 0.0) is None
    assert asking.ask(new(), AGAIN_S) == "t1"


def test_after_a_minute_from_the_answers_end_it_does_not() -> None:
    asking = Asking()
    asking.ask(new(), 0.0)
    assert asking.ask(new(), AGAIN_S + 0.1) is None
    asking.ask(new(), 1000.0, ends=False)
    asking.repeats.completed("t3", 2000.0)
    assert asking.ask(new(), 2000.0 + AGAIN_S) == "t3"


def test_a_double_click_before_the_answer_is_no_word_about_it() -> None:
    asking = Asking()
    asking.ask(new(), 0.0, ends=False)
    assert asking.ask(new(), 1.0) is None


def test_what_failed_is_asked_again_for_want_of_an_answer() -> None:
    asking = Asking()
    asking.ask(new(), 0.0, ends=False)
    asking.repeats.forget(("t1", "never seen"))
    assert asking.ask(new(), 1.0) is None


@pytest.mark.parametrize(
    "other",
    [
        {"text": "hi!"},
        {"client": "you"},
        {"wants": Wants(model="qwen3")},
        {"wants": Wants(worker="w-1")},
        {"options": Options(max_tokens=500)},
    ],
)
def test_another_text_client_model_machine_or_limit_is_another_question(other: dict[str, Any]) -> None:
    asking = Asking()
    asking.ask(new(), 0.0)
    assert asking.ask(new(**other), 1.0) is None


@pytest.mark.parametrize(
    "how", [{"kind": "bench"}, {"kind": "compare"}, {"kind": "embedding"}, {"urgency": "background"}, {"parent": "p"}]
)
def test_what_nobody_asks_in_person_is_never_asked_again(how: dict[str, Any]) -> None:
    asking = Asking()
    asking.ask(new(**how), 0.0)
    assert asking.ask(new(**how), 1.0) is None


def test_a_program_that_asks_the_same_for_ever_stops_counting_until_it_rests() -> None:
    asking = Asking()
    heard = [asking.ask(new(), float(n)) for n in range(6)]
    assert heard == [None, "t1", "t2", None, None, None] and AGAIN_MOST == 2
    assert asking.ask(new(), 6.0 + AGAIN_S) is None
    assert asking.ask(new(), 7.0 + AGAIN_S) == "t7"


def test_a_grown_history_is_another_question() -> None:
    asking = Asking()
    turns = ({"role": "user", "content": "go on"}, {"role": "assistant", "content": "so"})
    asking.ask(NewTask(body=Body(messages=turns[:1])), 0.0)
    assert asking.ask(NewTask(body=Body(messages=(*turns, turns[0]))), 1.0) is None
    assert asking.ask(NewTask(body=Body(messages=turns[:1])), 2.0) == "t1"


def test_only_so_many_are_remembered_and_none_by_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "REMEMBERED", 2)
    asking = Asking()
    for n in range(3):
        asking.ask(new(f"secret {n}"), 0.0)
    assert asking.ask(new("secret 0"), 1.0) is None
    assert asking.ask(new("secret 2"), 1.0) == "t3"
    assert "secret" not in repr(vars(asking.repeats))
    assert Repeats(b"one").digest(new()) != Repeats(b"other").digest(new())
