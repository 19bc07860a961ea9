"""services.runtime.memory: what stands at the start is not looked through again, and circles are still found."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import gc, weakref
from services.runtime.memory import YOUNG, settle

class Circle:
    def __init__(self):
        self.self = self

settle()
assert gc.get_freeze_count() > 1_000 and gc.get_threshold()[0] == YOUNG
lost = weakref.ref(Circle())
kept = [[] for _ in range(2 * YOUNG)]
assert lost() is None, "a circle outlived two looks"
"""


def test_circles_are_found_although_python_looks_less_often() -> None:
    """In a process of its own: it is for the whole of it."""
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
