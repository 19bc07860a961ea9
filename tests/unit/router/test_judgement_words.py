"""services.router.judgement_words: what was said of an answer, as one reads it."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.events import QualityJudged, TaskSubmitted
from services.router.explain import explain_words
from services.router.judgement_words import judgement_words, replaced
from services.router.port import TaskStatus
from support import builders

ALONE: dict[str, Any] = {"judge": None, "peer": None, "comment": None, "client": None}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"source": "thumb", "value": 1.0, "client": "me"}, "Rated good by me."),
        ({"source": "thumb", "value": 0.0, "client": "me", "comment": "too long"}, "Rated bad by me: too long."),
        ({"source": "thumb", "value": 0.7, "client": "me"}, "Rated 0.70 of 1 by me."),
        ({"source": "thumb", "value": 1.0, "client": "me", "peer": "llama3"}, "Preferred to llama3 by me."),
        ({"source": "signal", "value": 0.0, "signal": "asked_again"}, "Asked again at once: weak evidence against it."),
        ({"source": "judge", "value": 0.5, "judge": "g", "peer": "l"}, "Called as good as l by g."),
        ({"source": "judge", "value": 0.5, "judge": "g", "peer": "l", "weight": 0.0}, "Called as good as l by g (not counted)."),
        ({"source": "thumb", "value": 0.5, "client": "me", "peer": "l", "weight": 0.0},
         "Chosen anew by me: no preference beside l any more."),
        ({"source": "check", "value": 1.0, "judge": "python"}, "Checked 1.00 of 1 by python."),
    ],
)  # fmt: skip
def test_each_word_is_one_sentence_and_weak_evidence_is_called_weak(fields: dict[str, Any], words: str) -> None:
    assert judgement_words(builders.build(QualityJudged, **(ALONE | fields))) == words


def test_a_tasks_explanation_tells_what_was_said_of_its_answer() -> None:
    event = builders.build(QualityJudged, **(ALONE | {"source": "signal", "value": 0.0, "signal": "empty"}))
    told = explain_words(TaskStatus(task="t", state="completed"), None, [builders.build(TaskSubmitted), event])
    assert told[-1] == "The answer was empty: weak evidence against it."


def said(id_: str, value: float, client: str = "me", **fields: Any) -> QualityJudged:
    return builders.build(
        QualityJudged,
        id=id_,
        **(ALONE | {"source": "thumb", "tasks": ("t",), "value": value, "client": client} | fields),
    )


def test_a_word_that_its_sayer_replaced_is_told_as_replaced() -> None:
    events = [builders.build(TaskSubmitted), said("a", 1.0), said("b", 1.0, "you"), said("c", 0.7)]
    told = explain_words(TaskStatus(task="t", state="completed"), None, events)
    assert told[-3:] == ["Rated good by me (replaced by a later word).", "Rated good by you.", "Rated 0.70 of 1 by me."]


def test_words_about_other_answers_and_of_judges_replace_nothing() -> None:
    beside = [
        said("b", 1.0, tasks=("t", "u"), peer="x"),
        said("c", 0.0, source="check"),
        said("d", 0.0, source="check"),
    ]
    assert replaced([said("a", 1.0), *beside]) == frozenset()
