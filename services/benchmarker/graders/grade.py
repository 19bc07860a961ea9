"""What a grader says, and what a check in a suite is: the two values that all graders share."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

ANSWER_CHARS_MAX = 50_000
"""Below a pipe's 64 KiB for all but the widest scripts, and a hundred times any suite's answer."""


class Grade(NamedTuple):
    """``value`` in [0, 1], or None where it cannot be told; ``why`` in a few words either way. They go into events, so they quote
    the check, a number or a count, and never the answer."""

    value: float | None
    why: str


class Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """What a suite says about a right answer. Each kind raises ValueError where its own fields contradict each other."""


def right(is_right: bool, why: str) -> Grade:
    """All or nothing."""
    return Grade(1.0 if is_right else 0.0, why)
