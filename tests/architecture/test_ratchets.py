"""Sizes that may only shrink. What is over a limit stands here with its ceiling, a multiple of ``STEP`` so that a line more is
no event; a ceiling is never raised. Where a longer file or function is the better code, its commit says why.
"""

from __future__ import annotations

import pytest

from support.source import OURS, ROOT, functions, python_files

FILE_LINES_MAX = 300
TEST_LINES_MAX = 500
"""A contract suite reads best in one piece."""
FUNCTION_LINES_MAX = 60
"""Sixty lines are a screen."""
STEP = 20

LONG_FILES: dict[str, int] = {
    "schemas/events.py": 440,
    "services/projector/store.py": 340,
    "simulation/world.py": 360,
}
LONG_FUNCTIONS: dict[str, int] = {
    "schemas/samples.py::_completed": 80,
}


def file_lines(path: str) -> int:
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


def function_lines() -> dict[str, int]:
    return {f"{path}::{name}": lines for path in python_files(*OURS) for name, lines in functions(path)}


@pytest.mark.parametrize(
    ("folder", "limit"), [*((folder, FILE_LINES_MAX) for folder in OURS), ("tests", TEST_LINES_MAX)]
)
def test_a_file_stays_readable(folder: str, limit: int) -> None:
    sizes = {path: file_lines(path) for path in python_files(folder)}
    assert {path: lines for path, lines in sizes.items() if lines > LONG_FILES.get(path, limit)} == {}


def test_a_function_fits_on_a_screen() -> None:
    ceilings = {name: LONG_FUNCTIONS.get(name, FUNCTION_LINES_MAX) for name in function_lines()}
    assert {name: lines for name, lines in function_lines().items() if lines > ceilings[name]} == {}


def test_the_ratchets_are_tight() -> None:
    """What became shorter gets a lower ceiling, or loses its row."""
    files = {path: file_lines(path) if (ROOT / path).exists() else 0 for path in LONG_FILES}
    names = function_lines()
    loose = {path: lines for path, lines in files.items() if lines <= max(LONG_FILES[path] - 2 * STEP, FILE_LINES_MAX)}
    loose |= {
        name: names.get(name, 0)
        for name, ceiling in LONG_FUNCTIONS.items()
        if names.get(name, 0) <= max(ceiling - STEP, FUNCTION_LINES_MAX)
    }
    assert loose == {}
