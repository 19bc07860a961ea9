"""On which step of a fixed scale is this value, and which colour is that?

Answers it for every picture of the statistics. The bounds are fixed: a block's colour must not change because a bad one was
added. The colours are seven steps of cividis, which people with any colour vision see as the same order, from dark to light.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Literal

Of = Literal["decode", "quality"]

BOUNDS: dict[Of, tuple[float, ...]] = {
    "decode": (5.0, 10.0, 20.0, 40.0, 80.0, 160.0),
    "quality": (0.15, 0.3, 0.45, 0.6, 0.75, 0.9),
}
"""A step begins at its bound. Tokens/s double with each: 5 is slower than one reads, 160 a page in three seconds."""

COLOURS = ("#00224e", "#2a3f6d", "#575d6d", "#7d7c78", "#a59c74", "#d2c060", "#fee838")
INKS = ("#ffffff", "#ffffff", "#ffffff", "#000000", "#000000", "#000000", "#000000")
"""What can be read on each: a contrast of at least 4.5."""


def step(of: Of, value: float) -> int:
    """0, the least, to 6."""
    return bisect_right(BOUNDS[of], value)


def bounds_words(of: Of) -> tuple[str, ...]:
    """What each step holds, least first: ``below 5``, ``5 to 10``, …, ``160 and more``; qualities as points of 100."""
    names = [f"{bound * 100 if of == 'quality' else bound:.0f}" for bound in BOUNDS[of]]
    middle = (f"{low} to {high}" for low, high in pairwise(names))
    return (f"below {names[0]}", *middle, f"{names[-1]} and more")
