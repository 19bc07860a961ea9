"""The demo's prompts while they are answered: one row each, filled in live.

Answers "who is answering what, right now?". On a terminal the rows change in place; in a pipe each is printed when it ends.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from services.cli import numbers
from services.cli.tables import grid

Json = dict[str, Any]
UNDER_WAY = ("", "waiting", "released", "running")
REFRESH_PER_S = 10
COLOURS = ("green", "yellow", "magenta", "blue")


@dataclass
class Row:
    """One prompt on its way: what is known of it so far."""

    number: int
    prompt: str
    domain: str = ""
    machine: str = ""
    state: str = ""
    answer: str = ""
    rate: float | None = None
    total_s: float | None = None
    task: str = ""


class Board:
    """``with board:`` around the asking. Rows are added by ``add`` and changed in place."""

    def __init__(self, console: Console, machines: tuple[str, ...]) -> None:
        self.rows: list[Row] = []
        self._console = console
        self._colours = dict(zip(machines, COLOURS, strict=False))
        self._live = Live(console=console, get_renderable=self.render, refresh_per_second=REFRESH_PER_S, transient=True)

    def showing(self) -> AbstractContextManager[object]:
        return self._live if self._console.is_terminal else nullcontext()

    def add(self, prompt: str) -> Row:
        row = Row(len(self.rows) + 1, prompt)
        self.rows.append(row)
        return row

    def ended(self, row: Row) -> None:
        """In a pipe nothing can change in place: say it now. A recording shows the table alone."""
        if not self._console.is_terminal and not self._console.record:
            speed = numbers.known(row.rate, numbers.rate)
            told = f"{row.number:>2}. {row.machine or 'nobody'}: {row.domain}, {speed}, {row.state}"
            self._console.print(f"{told}: {one_line(row.prompt)}", markup=False, soft_wrap=True)

    def render(self) -> Table:
        table = grid("#>", "domain", "prompt~", "machine", "tok/s>", "time>", "answer~")
        for row in self.rows:
            table.add_row(
                str(row.number),
                row.domain or "…",
                one_line(row.prompt),
                Text(row.machine or row.state or "…", style=f"bold {self._colours.get(row.machine, 'dim')}"),
                "" if row.state in UNDER_WAY else numbers.known(row.rate, numbers.plain),
                "" if row.total_s is None else numbers.seconds(row.total_s),
                one_line(row.answer),
            )
        return table


def one_line(text: str) -> str:
    return " ".join(text.split())
