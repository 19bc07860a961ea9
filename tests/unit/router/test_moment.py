from __future__ import annotations

import pytest

from services.router.moment import moment_us

NOW = 1_764_437_000_000_000


@pytest.mark.parametrize(
    ("text", "ago_s"),
    [("90s", 90), ("15min", 900), ("15 min ago", 900), ("15m", 900), ("2h", 7200), ("1.5h", 5400), ("3d", 259_200)],
)
def test_so_long_ago(text: str, ago_s: float) -> None:
    assert moment_us(text, NOW) == NOW - round(ago_s * 1e6)


@pytest.mark.parametrize(
    ("text", "unix"),
    [
        ("2026-01-31T12:00", 1_769_860_800),
        ("2026-01-31 12:00", 1_769_860_800),
        ("2026-01-31T12:00+09:00", 1_769_828_400),
        ("2026-01-31", 1_769_817_600),
    ],
)
def test_a_date_is_utc_unless_it_says_otherwise(text: str, unix: int) -> None:
    assert moment_us(text, NOW) == unix * 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        "", "h", "2 fortnights", "least_in_flight", "2026-13-01", "-2h", "t1",
        "9" * 400 + "h", "99999999999w", "1969-07-20", "9999-12-31T23:59:59-23:59",
    ],
)  # fmt: skip
def test_what_is_no_time_is_none(text: str) -> None:
    assert moment_us(text, NOW) is None
