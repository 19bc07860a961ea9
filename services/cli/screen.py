"""Lines that fit on a screen: columns where there is room, one paragraph a row where there is not, and never a cell lost.

Answers "how is this laid out, so wide and so high?". It knows nothing of what the lines say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
    """A table. A column whose name ends in ``>`` is aligned to the right. ``marks`` are shown before the rows. ``spare`` are the
    columns, by name and in groups, that go to a line below their row where it is narrow; the first group goes first."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    marks: tuple[str, ...] = ()
    spare: tuple[tuple[str, ...], ...] = ()


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
            yield from (
                lines[:count] if count in (0, len(lines)) else [*lines[: count - 1], _cut(lines[count - 1], width)]
            )
        if left_out:
            yield Text(f"… {left_out} more line{'' if left_out == 1 else 's'}: {self.more}", style="dim")


def _cut(line: Text, width: int) -> Text:
    """Says that something followed here."""
    said = line.plain
    while cell_len(said) + 2 > width:
        said = said.rpartition(" ")[0] or said[:-1]
    return Text(f"{said} …", style=line.style)


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
        return columns(section.table, width)
    if not section.lines:
        return []
    if not section.title:
        return [Text(part, style=section.style) for line in section.lines for part in _wrapped(line, width)]
    indent = cell_len(section.title) + 1
    is_above = indent > width // 8  # too long to stand beside
    if is_above:
        indent = 2
    parts = [part for line in section.lines for part in _wrapped(line, width - indent)]
    told = [Text(" " * indent + part, style=section.style) for part in parts]
    if is_above:
        return [*(Text(part, style="bold") for part in _wrapped(section.title, width)), *told]
    return [Text.assemble((section.title, "bold"), " ", (parts[0], section.style)), *told[1:]]


def columns(table: Rows, width: int) -> list[Text]:
    """Columns; where there is no room for all of them the spare ones go below their row, and without any a row is a paragraph."""
    names = [name.removesuffix(">") for name in table.columns]
    flat = [name.replace("\n", " ") for name in names]
    marks = table.marks or ("",) * len(table.rows)
    margin = max((cell_len(mark) for mark in marks), default=0)
    widths = [
        max(cell_len(text) for text in (*name.split("\n"), *(row[n] for row in table.rows)))
        for n, name in enumerate(names)
    ]
    kept, spare = list(range(len(names))), list(table.spare)
    while margin + sum(len(GAP) + widths[n] for n in kept) > width:
        if not spare:
            return stacked(flat, table.rows, marks, width)
        gone = spare.pop(0)
        kept = [n for n in kept if flat[n] not in gone]

    def line(cells: Sequence[str], mark: str, style: str) -> Text:
        padded = [GAP + _padded(cells[n], widths[n], table.columns[n].endswith(">")) for n in kept]
        return Text((_padded(mark, margin, False) + "".join(padded)).rstrip(), style=style)

    below = [n for n in range(len(names)) if n not in kept]
    lines = _head([name if n in kept else "" for n, name in enumerate(names)], line) if any(names) else []
    for row, mark in zip(table.rows, marks, strict=True):
        lines.append(line(row, mark, "bold" if mark else ""))
        if told := _told([flat[n] for n in below], [row[n] for n in below]):
            indent = " " * (margin + 2 * len(GAP))
            lines += [Text(indent + part, style="dim") for part in _wrapped(told, width - len(indent))]
    return lines


def _head(names: Sequence[str], line: Callable[[Sequence[str], str, str], Text]) -> list[Text]:
    """As high as the name with the most lines; the others stand at the bottom."""
    parts = [name.split("\n") for name in names]
    high = max(map(len, parts))
    return [line([([""] * (high - len(part)) + part)[n] for part in parts], "", "dim") for n in range(high)]


def _told(names: Sequence[str], cells: Sequence[str]) -> str:
    return ", ".join(f"{name.lstrip('=+ ')} {cell}".strip() for name, cell in zip(names, cells, strict=True) if cell)


def stacked(names: Sequence[str], rows: Sequence[Sequence[str]], marks: Sequence[str], width: int) -> list[Text]:
    """One paragraph a row: every cell with its column's name."""
    found = []
    for row, mark in zip(rows, marks, strict=True):
        for n, part in enumerate(_wrapped(f"{mark or '·'} {_told(names, row)}", width - 2)):
            found.append(Text(part if n == 0 else f"  {part}", style="bold" if mark == "→" else ""))
    return found


def _padded(cell: str, size: int, on_right: bool) -> str:
    space = " " * (size - cell_len(cell))
    return space + cell if on_right else cell + space


def _wrapped(line: str, width: int) -> list[str]:
    """Broken between words; a word that is longer than a line is broken inside, never cut off."""
    console = Console(width=max(width, 8), color_system=None)
    return [part.plain.rstrip() for part in Text(line).wrap(console, max(width, 8))] or [""]
