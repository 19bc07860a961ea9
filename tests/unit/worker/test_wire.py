from __future__ import annotations

from typing import Any

import pytest

from services.worker.backends.wire import moment


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("2026-11-29T12:00:00.123456789+09:00", 1_795_921_200.123456),
        ("2026-11-29T03:00:00Z", 1_795_921_200.0),
        ("2318-11-29T03:00:00Z", 11_010_481_200.0),
        ("0001-01-01T00:00:00Z", None),
        ("2026-11-29T12:00:00", None),
        ("soon", None),
        (5, None),
        (None, None),
    ],
)
def test_a_time_is_seconds_or_nothing(said: Any, seconds: float | None) -> None:
    assert moment(said) == seconds
