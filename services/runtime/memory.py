"""How often a long-lived process looks for garbage in circles.

Answers "what need not be looked through again and again?". Python's own setting, a look each 700 objects, suits short scripts: a
router under load spent a tenth of its time on it. What stands at the start stays, so it is not looked through at all. Nothing is
leaked: circles are found later, and everything else is freed at once as ever.
"""

from __future__ import annotations

import gc

YOUNG = 50_000
"""Objects made since the last look: some 30 tasks' worth, a few MB at the most."""
MIDDLE, OLD = 20, 50
"""Each so many looks at the young ones the middle generation is looked through, each so many of those the whole."""


def settle() -> None:
    """Once, when a service is ready."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
