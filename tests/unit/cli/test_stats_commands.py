"""Which cell was meant, and how the statistics look at 80, 100 and 160 columns without colours, kept as text beside this file.

``HEADRACE_REDRAW=1`` writes the pictures anew; whoever does so reads the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console, RenderableType

from services.cli.exits import CommandFailed, Exit
from services.cli.stats_commands import cell_of, shown
from services.cli.stats_explained import explained
from services.cli.stats_table import Which
from support import stats_pages
from support.wide_stats import household, wide

PICTURES = Path(__file__).parent / "pictures"
ROWS, COLUMNS = 40, 60


@pytest.mark.parametrize(
    ("text", "options", "model", "domain", "worker"),
    [
        ("qwen3/code/desk", {}, "qwen3", "code", "desk"),
        ("Qwen/Qwen3-8B/code/desk", {}, "Qwen/Qwen3-8B", "code", "desk"),
        ("hf.co/org/model:Q4_K_M/code/w-7f3a", {}, "hf.co/org/model:Q4_K_M", "code", "w-7f3a"),
        ("Qwen/Qwen3-8B/code", {"worker": "a/b"}, "Qwen/Qwen3-8B", "code", "a/b"),
        ("Qwen/Qwen3-8B/desk", {"domain": "code"}, "Qwen/Qwen3-8B", "code", "desk"),
        ("Qwen/Qwen3-8B", {"domain": "code", "worker": "desk"}, "Qwen/Qwen3-8B", "code", "desk"),
        ("code/desk", {"model": "Qwen/Qwen3-8B"}, "Qwen/Qwen3-8B", "code", "desk"),
        ("-", {"model": "a/b", "domain": "code", "worker": "desk"}, "a/b", "code", "desk"),
    ],
)
def test_a_cell_is_read_from_its_end_and_what_an_option_says_is_not_in_it(
    text: str, options: dict[str, str], model: str, domain: str, worker: str
) -> None:
    given = {"model": None, "domain": None, "worker": None, **options}
    assert cell_of(text, **given) == {"model": model, "domain": domain, "worker": worker}


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("qwen3", {}, "no model and no domain"),
        ("code/desk", {}, "no model"),
        ("-", {"model": "a"}, "no domain and no machine"),
        ("a/b/c", {"model": "a"}, "left over"),
        ("a", {"model": "a", "domain": "b", "worker": "c"}, "left over"),
    ],
)
def test_less_or_more_than_a_cell_is_refused_with_an_example(text: str, options: dict[str, str], words: str) -> None:
    with pytest.raises(CommandFailed, match=words) as refused:
        cell_of(text, **{"model": None, "domain": None, "worker": None, **options})
    assert refused.value.code == Exit.USAGE and "--explain" in (refused.value.hint or "")


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
