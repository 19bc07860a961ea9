"""Lines that fit on a screen: columns where there is room, one paragraph a row where there is not, and never a cell lost.

Answers "how is this laid out, so wide and so high?". It knows nothing of what the lines say.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

HEIGHT = 24
"""A terminal's lines since the VT100; what is longer needs a reader who asked for it."""
WIDTH = 100
"""Longer lines are hard to read, however wide the terminal."""
GAP = "  "


class Rows(NamedTuple):
    """A table. A column whose name ends in ``>`` is aligned to the right. ``marks`` are shown before the rows."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    marks: tuple[str, ...] = ()


class Section(NamedTuple):
    """Lines that belong together. ``title`` stands before the first, the others are indented as far. ``least`` of them stay when
    the screen is too small for all."""

    lines: list[str]
    title: str = ""
    table: Rows | None = None
    style: str = ""
    least: int = 1


class Screen:
    """``height`` None shows everything. ``more`` says how to see what was left out."""

    def __init__(self, sections: Sequence[Section], *, height: int | None = HEIGHT, more: str = "") -> None:
        self.sections, self.height, self.more = list(sections), height, more

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.lines(min(options.max_width, WIDTH))

    def lines(self, width: int) -> Iterator[Text]:
        """Each at most ``width`` cells wide."""
        laid = [_laid(section, width) for section in self.sections]
        shown = [len(lines) for lines in laid]
        if self.height is not None:
            shown = _fitted(shown, [max(1, section.least) for section in self.sections], self.height)
        left_out = sum(map(len, laid)) - sum(shown)
        for lines, count in zip(laid, shown, strict=True):
            yield from lines[:count]
        if left_out:
            yield Text(f"… {left_out} more line{'' if left_out == 1 else 's'}: {self.more}", style="dim")


def _fitted(sizes: list[int], least: list[int], height: int) -> list[int]:
    """How much of each section is shown; the last ones give way first."""
    shown = list(sizes)
    if sum(shown) <= height:
        return shown
    for keep in (least, [0] * len(sizes)):
        for at in reversed(range(len(shown))):
            over = sum(shown) + 1 - height  # the line that says so needs its place too
            if over > 0:
                shown[at] = max(min(keep[at], sizes[at]), shown[at] - over)
    return shown


def _laid(section: Section, width: int) -> list[Text]:
    if section.table is not None:
        return _table(section.table, width)
    if not section.lines:
        return []
    if not section.title:
        return [Text(part, style=section.style) for line in section.lines for part in _wrapped(line, width)]
    indent = cell_len(section.title) + 1
    if indent > width // 8:  # too long to stand beside: above
        indent = 2
    parts = [part for line in section.lines for part in _wrapped(line, width - indent)]
    told = [Text(" " * indent + part, style=section.style) for part in parts]
    if indent == 2:
        return [*(Text(part, style="bold") for part in _wrapped(section.title, width)), *told]
    return [Text.assemble((section.title, "bold"), " ", (parts[0], section.style)), *told[1:]]


def _table(table: Rows, width: int) -> list[Text]:
    names = [name.rstrip(">") for name in table.columns]
    widths = [max(cell_len(name), *(cell_len(row[n]) for row in table.rows), 0) for n, name in enumerate(names)]
    marks = table.marks or ("",) * len(table.rows)
    margin = max((cell_len(mark) for mark in marks), default=0)
    if margin + len(GAP) * len(widths) + sum(widths) > width:
        return stacked(names, table.rows, marks, width)
    right = [name.endswith(">") for name in table.columns]

    def line(cells: Sequence[str], mark: str, style: str) -> Text:
        padded = [_padded(cell, size, on_right) for cell, size, on_right in zip(cells, widths, right, strict=True)]
        return Text(_padded(mark, margin, False) + "".join(GAP + cell for cell in padded).rstrip(), style=style)

    head = [line(names, "", "dim")] if any(names) else []
    return [*head, *(line(row, mark, "bold" if mark else "") for row, mark in zip(table.rows, marks, strict=True))]


def stacked(names: Sequence[str], rows: Sequence[Sequence[str]], marks: Sequence[str], width: int) -> list[Text]:
    """One paragraph a row: every cell with its column's name."""
    found = []
    for row, mark in zip(rows, marks, strict=True):
        told = ", ".join(f"{name.lstrip('=+ ')} {cell}".strip() for name, cell in zip(names, row, strict=True) if cell)
        for n, part in enumerate(_wrapped(f"{mark or '·'} {told}", width - 2)):
            found.append(Text(part if n == 0 else f"  {part}", style="bold" if mark == "→" else ""))
    return found


def _padded(cell: str, size: int, on_right: bool) -> str:
    space = " " * (size - cell_len(cell))
    return space + cell if on_right else cell + space


def _wrapped(line: str, width: int) -> list[str]:
    """Broken between words; a word that is longer than a line is broken inside, never cut off."""
    console = Console(width=max(width, 8), color_system=None)
    return [part.plain.rstrip() for part in Text(line).wrap(console, max(width, 8))] or [""]
