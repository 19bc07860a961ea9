"""What of a list on the page must be sent again, and how little of it?

A region holds the rows of one list as HTML, rendered once for everybody who looks. Pure: ``now`` is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from services.router.http.page.rows import Row

TOLD_EVERY_S = 5.0
"""Seconds and shares that nobody would miss; the browser counts the seconds in between."""
TOLD_AT_ONCE_MOST = 40
"""Rows re-rendered for these alone in one step: 500 waiting tasks then take twelve steps, the first places first."""

Render = Callable[[Any], str]


class Region:
    """``step`` brings it up to date and says what changed; ``whole`` is everything, for whoever comes."""

    def __init__(self, render: Render) -> None:
        self._render = render
        self._rows: dict[str, tuple[Row, str, float]] = {}

    @property
    def html(self) -> str:
        return "".join(html for _, html, _ in self._rows.values())

    @property
    def size(self) -> int:
        return len(self._rows)

    def whole(self) -> dict[str, Any]:
        return {"order": list(self._rows), "rows": {key: html for key, (_, html, _) in self._rows.items()}}

    def step(self, rows: Sequence[Row], now: float) -> dict[str, Any]:
        """Empty where nothing changed. ``gone`` leave, then ``rows`` are put in place, new ones at the end, unless there is an
        ``order``."""
        before, told = self._rows, 0
        after: dict[str, tuple[Row, str, float]] = {}
        sent: dict[str, str] = {}
        for row in rows:
            known = before.get(row.id)
            if known is not None and known[0].known_by == row.known_by:
                quiet = known[0].tells == row.tells or now - known[2] < TOLD_EVERY_S or told >= TOLD_AT_ONCE_MOST
                if quiet:
                    after[row.id] = known
                    continue
                told += 1
            html = self._render(row.view)
            after[row.id] = (row, html, now)
            if known is None or known[1] != html:
                sent[row.id] = html
        self._rows = after
        gone = [key for key in before if key not in after]
        stayed = [key for key in before if key in after]
        step: dict[str, Any] = {}
        if gone:
            step["gone"] = gone
        if sent:
            step["rows"] = sent
        if list(after) != stayed + [key for key in after if key not in before]:
            step["order"] = list(after)
        return step
