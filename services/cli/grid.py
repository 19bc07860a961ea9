"""A table that loses nothing: where the terminal is too narrow for its columns, some of them go below each row.

Answers "how wide must it be?". rich would take columns away or cut numbers off without a word; a reader would take the rest for
all there is.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from services.cli.screen import Rows, columns

FOLD_LEAST = 8
"""A column of words may be folded down to this; narrower, syllables stand on top of each other."""


class Grid(Table):
    """Columns as ``rich.table.Table`` takes them; ``no_wrap`` ones are never broken. ``spare``: see ``screen.Rows``."""

    def __init__(self, *, spare: tuple[tuple[str, ...], ...] = (), **options: Any) -> None:
        super().__init__(**options)
        self.spare = spare
        self.plain: list[tuple[str, ...]] = []

    def add_row(self, *cells: Any, **options: Any) -> None:
        self.plain.append(tuple(cell.plain if isinstance(cell, Text) else str(cell or "") for cell in cells))
        super().add_row(*cells, **options)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self._least(console, options) <= options.max_width:
            yield from super().__rich_console__(console, options)
            return
        names = [f"{column.header}{'>' if column.justify == 'right' else ''}" for column in self.columns]
        yield from columns(Rows(tuple(names), self.plain, spare=self.spare), options.max_width)

    def _least(self, console: Console, options: ConsoleOptions) -> int:
        wide = options.update(max_width=10_000)
        least = 0
        for column in self.columns:
            if column.overflow == "ellipsis":  # says itself that it was cut
                least += FOLD_LEAST
                continue
            size = self._measure_column(console, wide, column)
            if column.no_wrap or self.spare:  # with spare columns: rather below its row than in pieces
                least += size.maximum
            else:
                least += min(size.minimum, FOLD_LEAST + sum(self._padding_of(column)))
        return least + self._extra_width

    def _padding_of(self, column: Any) -> tuple[int, int]:
        return self.padding[3], self.padding[1]
