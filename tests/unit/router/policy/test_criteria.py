"""Criteria that nobody wrote: of a model's size beside the others', and of what it was measured at."""

from __future__ import annotations

from services.router.policy.criteria import Known, criteria

SMALL, MIDDLE = Known(model="s", bytes=2_000_000_000), Known(model="m", bytes=5_000_000_000)
LARGE = Known(model="l", bytes=40_000_000_000, qualities={"code": 0.9, "chat": 0.8, "maths": 0.95, "ja": 0.7, "x": 0.1})


def test_the_smallest_is_for_small_things_and_the_largest_for_hard_ones() -> None:
    made = criteria([LARGE, SMALL, MIDDLE], {})
    assert made["s"].startswith("s, a small model of 2.0 GB, for everyday requests")
    assert made["m"].startswith("m, a middle-sized model of 5.0 GB")
    assert made["l"].startswith("l, a large model of 40.0 GB, for hard requests only")
    assert made["l"].endswith("measured quality: maths 95 %, code 90 %, chat 80 %, ja 70 %")


def test_what_is_written_stands_and_what_is_unknown_is_said() -> None:
    made = criteria([SMALL, Known(model="u")], {"s": "greetings"})
    assert made == {"s": "greetings", "u": "u, whose size is unknown"}
    assert criteria([SMALL], {})["s"] == "s, whose size is 2.0 GB"
