"""What every test gets: the fixtures of tests/support, and how long the long tests may be."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

# Fixtures live beside what they start. Listed here, not found: a fixture's home must be easy to look up.
pytest_plugins = ["support.natsd"]

# What the command prints in a test is as wide as in a pipe, wherever the tests run.
for variable in ("COLUMNS", "LINES"):
    os.environ.pop(variable, None)

# Machines are busy: how long an example takes says nothing. CI tries the same examples each time; a person's runs look further.
settings.register_profile(
    "headrace",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
    print_blob=True,
)
settings.load_profile("headrace")


@pytest.fixture(scope="session")
def scale() -> Callable[[int, int], int]:
    """``scale(short, long)``: the number of rounds of a torture test. ``make torture`` is long, .ci/run is short."""
    is_long = os.environ.get("HEADRACE_TORTURE", "short") == "long"
    return lambda short, long: long if is_long else short
