"""The projector's cells, a batch at a time.

Answers "up to which position are these statistics the fold of the log?". Cells arrive one by one, but only whole batches are a
fold of the log up to some position, so they are held until the projector's marker comes, and then counted (``schemas.census``).
Statistics that cannot be vouched for are used all the same, and said to be so: a decision must not wait for a projector.
"""

from __future__ import annotations

from schemas.census import Census, Marker
from schemas.statistics import Cell, Statistics, key_of

PATIENCE_S = 10.0
"""A batch takes well below a second; longer, and its projector died in it, or is one that knows no markers."""


class Cells:
    """Puts cells into ``stats``. ``exact``: they are the fold of the log up to ``stats.position``, no more and no less."""

    def __init__(self, stats: Statistics) -> None:
        self._stats = stats
        self._census = Census()
        self._held: list[Cell] = []
        self._since = 0.0
        self.exact = True  # nothing is the fold of a log up to 0

    @property
    def held(self) -> int:
        return len(self._held)

    def put(self, cell: Cell, now: float) -> None:
        """A cell, still without the marker of its batch."""
        if not self._held:
            self._since = now
        self._held.append(cell)

    def mark(self, marker: Marker) -> bool:
        """The end of a batch; whether the statistics are exactly what the projector vouches for."""
        self._apply()
        self.exact = self._census.marker(marker.position) == marker
        if self.exact:
            self._stats.position = marker.position
        return self.exact

    def settle(self) -> None:
        """Use what is there: the bucket has been read, and who decides now had better know it."""
        if self._held:
            self._apply()
            self.exact = False

    def beat(self, now: float) -> bool:
        """Whether a batch that nobody ends had to be used as it is."""
        late = bool(self._held) and now - self._since > PATIENCE_S
        if late:
            self.settle()
        return late

    def _apply(self) -> None:
        for cell in self._held:
            self._stats.put(cell)
            self._census.put(key_of(cell), cell.last_seq)
        self._held = []
