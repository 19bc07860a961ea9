from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from services.cli import numbers
from support.source import ROOT


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0.0042, "4.20 ms"),
        (0.0, "0 s"),
        (1.3, "1.30 s"),
        (12.34, "12.3 s"),
        (95, "1 min 35 s"),
        (7400, "2 h 3 min"),
        (200_000, "2 d 7 h"),
        (-66.8, "-1 min 7 s"),
    ],
)
def test_seconds_are_written_in_the_unit_people_use(value: float, words: str) -> None:
    assert numbers.seconds(value) == words


def test_unknown_is_said_with_its_reason() -> None:
    assert numbers.known(None, numbers.rate, "no_agent") == "unknown (no_agent)"
    assert numbers.known(None, numbers.rate) == "unknown"


def test_a_measured_zero_is_not_unknown() -> None:
    assert numbers.known(0.0, numbers.share) == "0 %"


@pytest.mark.parametrize(("value", "words"), [(98_000_000, "98.0 MB"), (5_200_000_000, "5.20 GB"), (512, "512 B")])
def test_sizes_are_decimal(value: float, words: str) -> None:
    assert numbers.size(value) == words


@given(st.floats(min_value=0, max_value=1e12))
def test_no_number_is_ever_written_with_an_exponent(value: float) -> None:
    assert "e" not in numbers.rate(value).removesuffix("tok/s")


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("45m", 2_700), ("2h", 7_200), ("1d", 86_400), ("1h30m", 5_400), (" 2H ", 7_200)]
)
def test_a_time_is_read_as_people_write_it(text: str, seconds: float) -> None:
    assert numbers.duration(text) == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "0h", "-2h", "2 hours", "30m1h"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as 90s"):
        numbers.duration(text)


def test_a_share_is_written_in_one_way_by_all_of_the_product() -> None:
    """``12 %``, as every other unit stands after a blank."""
    files = [path for folder in ("services", "schemas", "openwebui") for path in (ROOT / folder).rglob("*.py")]
    assert [path.name for path in files if re.search(r":\.\d%\}", path.read_text(encoding="utf-8"))] == []
    assert numbers.share(0.123) == "12 %"
