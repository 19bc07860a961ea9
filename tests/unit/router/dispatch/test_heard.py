"""Time that only passes while the router hears itself."""

from __future__ import annotations

from services.router.dispatch.heard import HeardClock


def test_each_beat_adds_at_most_twice_its_interval() -> None:
    clock = HeardClock(interval_s=0.25)
    assert [clock.beat(at) for at in (100.0, 100.25, 100.625, 108.625, 108.875)] == [0.0, 0.25, 0.625, 1.125, 1.375]


def test_a_clock_that_runs_backwards_adds_nothing() -> None:
    clock = HeardClock()
    clock.beat(5.0)
    assert clock.beat(4.0) == 0.0
