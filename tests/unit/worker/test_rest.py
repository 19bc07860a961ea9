from __future__ import annotations

import pytest

from services.worker.rest import Rest


def test_failures_in_a_row_rest_longer_up_to_a_minute() -> None:
    rest = Rest()
    assert [rest.after("stall") for _ in range(5)] == [5.0, 15.0, 45.0, 60.0, 60.0]


def test_a_success_forgets_them() -> None:
    rest = Rest()
    rest.after("oom")
    rest.succeeded()
    assert rest.after("stall") == 5.0


@pytest.mark.parametrize("failure", ["disconnect", "busy", "rejected", "protocol", "timeout"])
def test_what_is_seen_or_said_otherwise_needs_no_rest(failure: str) -> None:
    assert Rest().after(failure) == 0.0
