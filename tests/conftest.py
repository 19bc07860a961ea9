"""What every test gets: the fixtures of tests/support, and how long the long tests may be."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable

import pytest

# Fixtures live beside what they start. Listed here, not found: a fixture's home must be easy to look up.
pytest_plugins = [name for name in ("support.natsd",) if importlib.util.find_spec(name)]


@pytest.fixture(scope="session")
def scale() -> Callable[[int, int], int]:
    """``scale(short, long)``: the number of rounds of a torture test. ``make torture`` is long, .ci/run is short."""
    is_long = os.environ.get("HEADRACE_TORTURE", "short") == "long"
    return lambda short, long: long if is_long else short
