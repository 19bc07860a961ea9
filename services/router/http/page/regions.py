"""What of a list on the page must be sent again, and how little of it?

A region holds the rows of one list as HTML, rendered once for everybody who looks. Pure: ``now`` is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from services.router.http.page.rows import Row

NEAR = 20
"""The first rows are those that one sees: what they are known by is sent at once."""
TOLD_EVERY_S = 5.0
"""Everything else: seconds and shares, which the browser counts on in between, and the plans of tasks far back, which change with
each pass of the planner."""
TOLD_AT_ONCE_MOST = 25
"""Of these in one step, those that waited longest first: what changes of 500 rows is sent within 20 steps."""

Render = Callable[[Any], str]


class Shown(NamedTuple):
    row: Row
    html: str
    at: float


class Region:
    """``step`` brings it up to date and says what changed; ``whole`` is everything, for whoever comes."""

    def __init__(self, render: Render) -> None:
        self._render = render
        self._rows: dict[str, Shown] = {}

    @property
    def html(self) -> str:
        return "".join(shown.html for shown in self._rows.values())

    def whole(self) -> dict[str, Any]:
        return {"order": list(self._rows), "rows": {key: shown.html for key, shown in self._rows.items()}}

    def step(self, rows: Sequence[Row], now: float) -> dict[str, Any]:
        """Empty where nothing changed. ``gone`` leave, ``rows`` are put in place, new ones before the row that ``before`` names
        for them, else at the end; then, where there is an ``order``, all are in that order."""
        known, sent = self._rows, dict[str, str]()
        told = self._worth_telling(rows, now)
        after: dict[str, Shown] = {}
        for row in rows:
            shown = known.get(row.id)
            if shown is not None and row.id not in told:
                after[row.id] = shown
                continue
            after[row.id] = Shown(row, self._render(row.view), now)
            if shown is None or shown.html != after[row.id].html:
                sent[row.id] = after[row.id].html
        gone = [key for key in known if key not in after]
        placed = _placed(known, after)
        self._rows = after
        step = {"gone": gone, "rows": sent, **placed}
        return {name: value for name, value in step.items() if value}

    def _worth_telling(self, rows: Sequence[Row], now: float) -> set[str]:
        """Of the rows that are there already: the near ones whose state changed, and some of the others."""
        at_once: set[str] = set()
        some: list[tuple[float, str]] = []
        for place, row in enumerate(rows):
            shown = self._rows.get(row.id)
            if shown is None or (shown.row.known_by, shown.row.tells) == (row.known_by, row.tells):
                continue
            if place < NEAR and shown.row.known_by != row.known_by:
                at_once.add(row.id)
            elif now - shown.at >= TOLD_EVERY_S:
                some.append((shown.at, row.id))
        return at_once | {key for _, key in sorted(some, key=lambda each: each[0])[:TOLD_AT_ONCE_MOST]}


def _placed(known: dict[str, Shown], after: dict[str, Shown]) -> dict[str, Any]:
    """``before``: a new row -> the one that it stands before. ``order`` only where rows changed places among themselves."""
    keys = list(after)
    if [key for key in known if key in after] != [key for key in keys if key in known]:
        return {"order": keys}
    before: dict[str, str] = {}
    following: str | None = None
    for key in reversed(keys):
        if key in known:
            following = key
        elif following is not None:
            before[key] = following
    return {"before": before}
