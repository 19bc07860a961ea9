from __future__ import annotations

import pytest

from services.benchmarker.graders.constraints import Constraints, grade_constraints


@pytest.mark.parametrize(
    ("check", "answer", "value"),
    [
        (Constraints(words_max=3), "one two three", 1.0),
        (Constraints(words_max=3), "one two three four", 0.0),
        (Constraints(chars_max=5), "五文字です。", 0.0),
        (Constraints(chars_max=6), "五文字で す。", 1.0),
        (Constraints(bullets=2, lines_max=2), "- one\n- two", 1.0),
        (Constraints(bullets=2), "・一\n・二\n・三", 0.0),
        (Constraints(bullets=2), "1. one\n2) two", 1.0),
        (Constraints(lines_min=2, lines_max=2), "one\n\ntwo", 1.0),
        (Constraints(must=(("cat",), ("mat", "rug"))), "The cat on the rug", 1.0),
        (Constraints(must=(("cat",), ("mat",))), "The cat", 0.5),
        (Constraints(must=(("cat",),), must_not=("dog",)), "cat and dog", 0.0),
        (Constraints(must=(("cat",),), must_not=("dog",), words_max=9), "cat and dog", 0.5),
        (Constraints(must=(("cat",),), words_max=9), "nothing of it", 0.0),
        (Constraints(language="ja"), "これは日本語です。", 1.0),
        (Constraints(language="ja"), "This is English.", 0.0),
        (Constraints(starts="Once", ends="home."), "once they came Home.", 1.0),
        (Constraints(starts="Once", ends="home."), "Once they left.", 0.5),
    ],
)
def test_the_grade_is_what_was_said_times_what_was_kept(check: Constraints, answer: str, value: float) -> None:
    assert grade_constraints(check, answer).value == value


def test_what_lacks_and_what_breaks_is_named() -> None:
    check = Constraints(must=(("cat", "kitten"),), words_max=2)
    assert grade_constraints(check, "a dog a dog").why == "lacks cat; breaks words (4)"


def test_going_in_circles_is_worth_nothing() -> None:
    check = Constraints(must=(("window",),), words_min=4)
    assert grade_constraints(check, "A window is " + "a window that is " * 20).value == 0.0


def test_no_constraint_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match="names no constraint"):
        Constraints()
    with pytest.raises(ValueError, match="group of must is empty"):
        Constraints(must=((),))
