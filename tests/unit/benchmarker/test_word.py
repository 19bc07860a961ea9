from __future__ import annotations

import pytest

from services.benchmarker.graders.word import Word, grade_word


def test_the_word_counts_as_a_whole_and_near_the_beginning() -> None:
    check = Word(any=("cat", "chat"))
    assert grade_word(check, "It is a Cat.").value == 1.0
    assert grade_word(check, "category").value == 0.0
    assert grade_word(check, "x " * 100 + "cat").value == 0.0


def test_a_word_that_must_not_be_said_makes_it_wrong() -> None:
    check = Word(any=("を",), none=("に",), within=4)
    assert [grade_word(check, text).value for text in ("を", "「を」です。に", "をに")] == [1.0, 1.0, 0.0]


def test_exact_takes_nothing_else() -> None:
    check = Word(any=("Paris",), exact=True)
    assert grade_word(check, '"Paris."').value == 1.0
    assert grade_word(check, "It is Paris.").value == 0.0


def test_words_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one word"):
        Word(any=())
    with pytest.raises(ValueError, match="within is 0"):
        Word(any=("a",), within=0)
