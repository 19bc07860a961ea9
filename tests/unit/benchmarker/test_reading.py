from __future__ import annotations

import pytest

from services.benchmarker.graders.reading import (
    after_answer,
    bullets,
    characters,
    first_line,
    goes_in_circles,
    lines,
    plain,
    says,
    without_echo,
    words,
)

QUESTION = "What is the capital of France? Answer with one word."


def test_marks_and_widths_are_made_plain() -> None:
    assert plain(" **１２** `x` ") == "12 x"


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        (f"{QUESTION} Paris", "Paris"),
        (f"\n{QUESTION}", ""),
        ("What is the capital of Spain? Madrid", "Spain? Madrid"),
        ("What is it? Paris", "What is it? Paris"),
        ("Paris", "Paris"),
    ],
)
def test_a_question_that_is_repeated_is_no_answer(answer: str, left: str) -> None:
    assert without_echo(answer, QUESTION) == left


def test_prose_goes_in_no_circles_and_a_loop_does() -> None:
    prose = (
        "The old bridge was closed on Monday because of cracks; engineers will repair it until it opens again in March."
    )
    assert not goes_in_circles(prose)
    assert not goes_in_circles("ha ha ha")
    assert goes_in_circles("そのまえで、" * 30)


def test_the_last_answer_phrase_counts() -> None:
    assert after_answer("The answer is 3. No: the answer is 4\nand so on") == "4"
    assert after_answer("答えは150kmです。") == "150kmです。"
    assert after_answer("nothing") is None


def test_a_phrase_is_found_as_a_whole() -> None:
    assert says("Blue sky", "blue")
    assert not says("bluebird", "blue")
    assert says("これは犬です", "犬")
    assert not says("a dog", "A")


def test_parts_of_a_text_are_counted() -> None:
    text = "- one, two\n\n* don't\n3) four"
    assert (words(text), lines(text), bullets(text), characters("日 本\n語")) == (5, 3, 3, 3)
    assert first_line("\n\n  a\nb") == "a"
