"""Sizes that may only shrink. A file or function over the limit stands here with its size; the number is never raised.

Where a longer one is the better code, say why in the commit that adds its row.
"""

from __future__ import annotations

import pytest

from support.source import OURS, ROOT, functions, python_files

FILE_LINES_MAX = 300
FUNCTION_LINES_MAX = 60
"""Sixty lines are a screen."""

LONG_FILES: dict[str, int] = {}
LONG_FUNCTIONS: dict[str, int] = {}


def file_lines(path: str) -> int:
    return len((ROOT / path).read_text(encoding="utf-8").splitlines())


@pytest.mark.parametrize("path", python_files(*OURS, "tests"))
def test_a_file_stays_readable(path: str) -> None:
    assert file_lines(path) <= LONG_FILES.get(path, FILE_LINES_MAX)


@pytest.mark.parametrize("path", python_files(*OURS))
def test_a_function_fits_on_a_screen(path: str) -> None:
    sizes = {f"{path}::{name}": lines for name, lines in functions(path)}
    too_long = {name: lines for name, lines in sizes.items() if lines > LONG_FUNCTIONS.get(name, FUNCTION_LINES_MAX)}
    assert too_long == {}


def test_the_ratchets_are_tight() -> None:
    """What became shorter gets its new number, or loses its row."""
    loose_files = {path: file_lines(path) for path, lines in LONG_FILES.items() if file_lines(path) < lines}
    sizes = {f"{path}::{name}": lines for path in python_files(*OURS) for name, lines in functions(path)}
    loose_functions = {name: sizes.get(name, 0) for name, lines in LONG_FUNCTIONS.items() if sizes.get(name, 0) < lines}
    assert (loose_files, loose_functions) == ({}, {})
