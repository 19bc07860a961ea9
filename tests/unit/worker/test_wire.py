from __future__ import annotations

from typing import Any

import pytest

from services.worker.backends.wire import from_status, moment


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


@pytest.mark.parametrize(
    "said",
    [
        'option \\"stop\\" must be of type array',
        'invalid format: \\"X\\"; expected \\"json\\" or a valid JSON Schema object',
        "invalid JSON schema in format",
    ],
)
def test_ollamas_500_for_a_wrong_request_is_the_requests_fault(said: str) -> None:
    error = from_status(500, f'{{"error":"{said}"}}')
    assert (error.failure, error.retryable) == ("rejected", False)


def test_another_500_may_be_the_machines() -> None:
    assert from_status(500, '{"error":"no such option in this build"}').failure == "protocol"
