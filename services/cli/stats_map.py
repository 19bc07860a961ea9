"""A heat map for a terminal: coloured blocks with the number in them, so that it reads the same without colours.

Answers "who is fast at what, at a glance?" from the router's JSON (docs/http.md). The bounds of the colours are fixed. Where
there are more columns than fit, they follow below in further bands; what is not shown at all is said in words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from schemas.scales import COLOURS, INKS, bounds_words, step
from services.cli.screen import WIDTH

Json = dict[str, Any]
LABEL_MOST = 30
"""A longer name gets a line of its own, above its blocks."""
BLOCK_LEAST, BLOCK_MOST = 7, 14
GAP = 1
LINES_MOST = 40
"""Of one map; a fleet of two hundred machines is looked at by name."""
ROWS, COLUMNS = 40, 60
"""What is asked of the router: more than a screen shows."""
NOT_HELD = "the machine does not hold the model"
MARKS = {
    "~": "~ worked out, not measured of just this",
    "?": "? unknown: nothing like it was measured",
    "–": "– does not hold it",
}


class HeatMap:
    """One of the maps of ``GET /stats/map``."""

    def __init__(self, body: Json) -> None:
        self._map = body
        self._has_domains = any(row["domain"] is not None for row in body["rows"])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self.lines(min(options.max_width, WIDTH), coloured=console.color_system is not None)

    def lines(self, width: int, *, coloured: bool = False) -> Iterator[Text]:
        """Each at most ``width`` cells wide. ``coloured``: the legend of the colours is worth its place."""
        found = self._map
        yield Text(found["title"], style="bold", overflow="fold")
        if not found["rows"] or not found["columns"]:
            yield Text("Nothing was measured of this yet.", style="dim")
            return
        label = max(cell_len(_label(row, self._has_domains)) for row in found["rows"])
        label = label if label <= LABEL_MOST else 2
        block = min(max(BLOCK_LEAST, *(cell_len(name) for name in found["columns"])), BLOCK_MOST)
        fit = max(1, (width - label) // (block + GAP))
        bands = max(1, LINES_MOST // (len(found["rows"]) + 3))
        shown = 0
        for start in range(0, min(len(found["columns"]), bands * fit), fit):
            yield from self._band(start, min(start + fit, len(found["columns"])), label, block)
            shown = min(start + fit, len(found["columns"]))
        yield from self._legend(width, shown, coloured)

    def _band(self, start: int, end: int, label: int, block: int) -> Iterator[Text]:
        yield from _head(self._map["columns"][start:end], label, block)
        before = None
        for row in self._map["rows"]:
            name = _label(row, self._has_domains)
            if self._has_domains and row["model"] != before:
                yield Text(row["model"], style="bold", overflow="fold")
            elif not self._has_domains and cell_len(name) > label:
                yield Text(name, style="bold", overflow="fold")
                name = ""
            before = row["model"]
            line = Text.assemble((_padded(name, label), "" if self._has_domains else "bold"))
            for cell in row["blocks"][start:end]:
                line.append(" " * GAP)
                line.append_text(self._block(cell, block))
            yield line

    def _block(self, cell: Json, size: int) -> Text:
        words = self._words(cell)
        if cell["value"] is None:
            return Text(words.center(size), style="dim")
        colour = step(self._map["of"], cell["value"])
        return Text(words.center(size), style=f"{INKS[colour]} on {COLOURS[colour]}")

    def _words(self, cell: Json) -> str:
        if cell["value"] is None:
            return "–" if cell["reason"] == NOT_HELD else "?"
        value = cell["value"] * 100 if self._map["of"] == "quality" else cell["value"]
        digits = f"{value:.1f}" if self._map["of"] == "decode" and value < 100 else f"{value:.0f}"
        return digits if cell["level"] == "cell" else f"~{digits}"

    def _legend(self, width: int, shown: int, coloured: bool) -> Iterator[Text]:
        found = self._map
        if coloured:
            legend = Text()
            for at, words in enumerate(bounds_words(found["of"])):
                legend.append(f" {words} ", style=f"{INKS[at]} on {COLOURS[at]}").append(" ")
            yield from legend.wrap(Console(width=width), width)
        there = {self._words(cell)[:1] for row in found["rows"] for cell in row["blocks"][:shown]}
        if told := [words for mark, words in MARKS.items() if mark in there]:
            yield Text("   ".join(told), style="dim", overflow="fold")
        columns, rows = found["columns_total"] - shown, found["rows_total"] - len(found["rows"])
        what = "machine" if found["of"] == "decode" else "domain"
        left = [f"{n} more {name}{'' if n == 1 else 's'}" for n, name in ((rows, "row"), (columns, what)) if n > 0]
        if left:
            yield Text(f"… {' and '.join(left)}: choose with -m, -d or -w", style="dim")


def _label(row: Json, has_domains: bool) -> str:
    return f"  {row['domain'] or '(any domain)'}" if has_domains else row["model"]


def _head(names: list[str], label: int, block: int) -> Iterator[Text]:
    """Names that are longer than a block go over several lines; the last of each stands on the blocks."""
    parts = [[name[at : at + block] for at in range(0, len(name), block)] or [""] for name in names]
    high = max(map(len, parts))
    for level in range(high):
        cells = [([""] * (high - len(part)) + part)[level].center(block) for part in parts]
        yield Text((" " * label + "".join(" " * GAP + cell for cell in cells)).rstrip(), style="dim")


def _padded(words: str, size: int) -> str:
    return words + " " * max(0, size - cell_len(words))
