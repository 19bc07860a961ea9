from __future__ import annotations

import pytest

from services.benchmarker.graders.choice import Choice, grade_choice

LETTERS = Choice(options=("A", "B", "C"), answer="B")
WORDS = Choice(options=("Reds", "Blues"), answer="Blues")
KANJI = Choice(options=("東", "西"), answer="東")


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        (LETTERS, "B"),
        (LETTERS, "b)"),
        (LETTERS, "(B)"),
        (LETTERS, "**B**"),
        (LETTERS, "Ｂ"),
        (LETTERS, "A horse is a horse, but C is wrong.\nThe answer is B."),
        (LETTERS, "正解はBです。"),
        (WORDS, "The Blues won."),
        (WORDS, "blues"),
        (KANJI, "東です。"),
    ],
)
def test_the_chosen_option_is_found(check: Choice, answer: str) -> None:
    assert grade_choice(check, answer).value == 1.0


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        (LETTERS, "A"),
        (LETTERS, "A, B, C"),
        (LETTERS, "Because a cat is not a dog."),
        (WORDS, "The Reds and the Blues"),
        (WORDS, "The Bluesmen"),
        (KANJI, "東か西"),
        (KANJI, "南"),
    ],
)
def test_another_several_or_no_options_are_wrong(check: Choice, answer: str) -> None:
    assert grade_choice(check, answer).value == 0.0


def test_an_option_inside_another_is_not_chosen_with_it() -> None:
    check = Choice(options=("red", "dark red"), answer="red")
    assert grade_choice(check, "dark red").value == 0.0


def test_an_answer_that_is_no_option_is_refused() -> None:
    with pytest.raises(ValueError, match="'D' is none of the options"):
        Choice(options=("A", "B"), answer="D")
    with pytest.raises(ValueError, match="two different"):
        Choice(options=("A",), answer="A")
