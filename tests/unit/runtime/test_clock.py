"""services.runtime.clock: time is handed in, so a test can move it."""

from __future__ import annotations

import time

import pytest

from services.runtime.clock import Clock, FakeClock, SystemClock


def test_a_fake_clock_moves_only_when_told() -> None:
    clock = FakeClock(start=100.0)
    assert (clock.monotonic(), clock.unix()) == (0.0, 100.0)
    clock.advance(2.5)
    assert (clock.monotonic(), clock.unix()) == (2.5, 102.5)


def test_a_fake_clock_refuses_to_run_backwards() -> None:
    with pytest.raises(ValueError, match="backwards"):
        FakeClock().advance(-1)


def test_the_system_clock_runs_forwards_and_knows_the_date() -> None:
    clock: Clock = SystemClock()
    first = clock.monotonic()
    assert clock.monotonic() >= first
    assert abs(clock.unix() - time.time()) < 60


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="this system has no clock that runs in suspend")
def test_the_system_clock_counts_the_time_of_a_suspend() -> None:
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    now = SystemClock().monotonic()
    assert before <= now <= time.clock_gettime(time.CLOCK_BOOTTIME)
