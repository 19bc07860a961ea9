"""How the statistics look at 80, 100 and 160 columns without colours, kept as text beside this file.

``HEADRACE_REDRAW=1`` writes them anew; whoever does so reads the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from services.cli.stats_commands import shown
from services.cli.stats_explained import explained
from services.cli.stats_table import Which
from support import stats_pages
from support.wide_stats import household, wide

PICTURES = Path(__file__).parent / "pictures"
ROWS, COLUMNS = 40, 60


def household_page(which: Which) -> RenderableType:
    known = household()
    chosen = {"both": (0, 1), "speed": (0,), "quality": (1,)}[which]
    found = stats_pages.maps(known, rows=ROWS, columns=COLUMNS)
    return shown(stats_pages.rows(known), [found[at] for at in chosen], which)


def wide_page() -> RenderableType:
    known = wide(200, 3, 2)
    return shown(stats_pages.rows(known, limit=12), stats_pages.maps(known, rows=ROWS, columns=COLUMNS), "both")


PAGES: dict[str, Callable[[], RenderableType]] = {
    "stats": lambda: household_page("both"),
    "stats-speed": lambda: household_page("speed"),
    "stats-quality": lambda: household_page("quality"),
    "stats-wide": wide_page,
    "stats-explain": lambda: explained(stats_pages.cell(household(), "qwen3", "code", "laptop")),
}


@pytest.mark.parametrize("width", [80, 100, 160])
@pytest.mark.parametrize("name", PAGES)
def test_the_screen_is_as_it_was_drawn(name: str, width: int) -> None:
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(PAGES[name]())
    drawn = "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())
    file = PICTURES / f"{name}-{width}.txt"
    if os.environ.get("HEADRACE_REDRAW"):
        PICTURES.mkdir(exist_ok=True)
        file.write_text(drawn)
    assert drawn == file.read_text()
