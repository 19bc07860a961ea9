from __future__ import annotations

import pytest

from services.benchmarker.graders.number import Number, grade_number, meant, read_kanji
from services.benchmarker.graders.reading import plain


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("12", 12),
        ("**12**", 12),
        ("１２", 12),
        ("The answer is 12.", 12),
        ("12 apples", 12),
        ("3 boxes of 4 apples make 12", 12),
        ("First 3, then 4.\nThe answer is 7, not 8.", 7),
        ("2 + 3 = 5", 5),
        ("10 - 4 = 6", 6),
        ("It is -4 degrees", -4),
        ("Between 3-4", 4),
        ("1,234,567", 1_234_567),
        ("1'234.5", 1234.5),
        ("about 1/4", 0.25),
        ("3万5千", 35_000),
        ("1.5億", 150_000_000),
        ("三百二十一", 321),
        ("二〇二六年", 2026),
        ("十", 10),
        ("答えは四百円です。", 400),
        ("一番大きいのは 21 です", 21),
        ("$50", 50),
    ],
)
def test_the_number_that_an_answer_gives_is_found(answer: str, value: float) -> None:
    found = meant(plain(answer))
    assert found is not None
    assert found.value == pytest.approx(value)


def test_an_answer_without_a_number_gives_none() -> None:
    assert meant("I do not know.") is None
    assert grade_number(Number(value=1), "I do not know.").value == 0.0


@pytest.mark.parametrize(
    ("answer", "value"),
    [("2.5 km", 1.0), ("2500 m", 1.0), ("2500", 1.0), ("2,500 metres", 1.0), ("2.5", 0.0), ("2500 km", 0.0)],
)
def test_units_are_converted_before_numbers_are_compared(answer: str, value: float) -> None:
    check = Number(value=2500, units={"m": 1, "metres": 1, "km": 1000})
    assert grade_number(check, answer).value == value


def test_a_tolerance_is_kept_exactly() -> None:
    check = Number(value=3.14, tolerance=0.01)
    assert [grade_number(check, text).value for text in ("3.14", "3.15", "3.151", "3.1")] == [1.0, 1.0, 0.0, 0.0]


def test_kanji_are_read_as_numbers() -> None:
    assert read_kanji("一億二千三百四十五万六千七百八十九") == 123_456_789


def test_a_negative_tolerance_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="tolerance is -1"):
        Number(value=1, tolerance=-1)
