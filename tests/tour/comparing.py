"""The differences between our answers and a bare server's: each is listed with its reason, and each that is listed occurs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from tour.observing import Seen, differences

LIST = Path(__file__).with_name("differences.toml")
NEVER = re.compile(
    r"finish_reason|stop_reason|done_reason|(^|[ .])status$|raised|tool_calls.*(name|arguments)|calls \d"
)
"""No reason excuses a difference in these."""


class Difference(NamedTuple):
    """``tours`` and ``paths`` are patterns in which ``*`` is anything."""

    tours: str
    paths: list[str]
    reason: str

    def is_of(self, tour: str) -> bool:
        return _matches(self.tours, tour)


def listed() -> list[Difference]:
    return [Difference(**each) for each in tomllib.loads(LIST.read_text(encoding="utf-8"))["difference"]]


def compare(tour: str, ours: Seen, theirs: Seen) -> list[str]:
    """What is wrong: nothing where every difference is listed and every one listed was seen."""
    known = [pattern for each in listed() if each.is_of(tour) for pattern in each.paths]
    found = differences(ours, theirs)
    wrong = [
        f"not listed: {path}: ours {_short(one)}, theirs {_short(other)}"
        for path, (one, other) in sorted(found.items())
        if not any(_matches(pattern, path) for pattern in known) or NEVER.search(path)
    ]
    gone = [pattern for pattern in known if not any(_matches(pattern, path) for path in found)]
    return wrong + [f"listed, but it does not occur: {pattern}" for pattern in gone]


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), text) is not None


def _short(value: Any) -> str:
    return repr(value)[:160]
