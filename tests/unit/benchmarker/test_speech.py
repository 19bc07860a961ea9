from __future__ import annotations

import pytest

from services.benchmarker.graders.speech import Speech, grade_speech


@pytest.mark.parametrize(
    ("language", "answer", "value"),
    [
        ("ja", "電車で学校に行きます。", 1.0),
        ("ja", "I go to school by train.", 0.0),
        ("en", "I go to school by train.", 1.0),
        ("en", "Ich gehe mit dem Zug zur Schule und das ist gut.", 0.0),
        ("en", "123", 0.0),
    ],
)
def test_the_language_of_an_answer_is_told(language: str, answer: str, value: float) -> None:
    assert grade_speech(Speech(language=language), answer).value == value
