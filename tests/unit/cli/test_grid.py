from __future__ import annotations

from collections import Counter

import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType

from services.cli import tables
from support.http_examples import example

PAGES = {
    "fleet": (tables.fleet, "`GET /workers`"),
    "stats": (tables.stats, "`GET /stats`"),
    "models": (tables.models, "`GET /models`"),
}


def lines_of(renderable: RenderableType, width: int) -> list[str]:
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get().splitlines()


def squeezed(lines: list[str]) -> str:
    return "".join("".join(lines).split())


@pytest.mark.parametrize("width", [24, 40, 60, 80, 99, 120])
@pytest.mark.parametrize("page", PAGES)
def test_no_table_loses_a_word_on_a_narrow_terminal(page: str, width: int) -> None:
    render, heading = PAGES[page]
    body = example(heading)
    wide = lines_of(render(body), 400)
    narrow = lines_of(render(body), width)
    assert all(cell_len(line) <= width for line in narrow)
    lost = Counter(squeezed(wide).replace("─", "")) - Counter(squeezed(narrow).replace("─", ""))
    assert not lost, f"gone: {dict(lost)}"


def test_where_there_is_room_it_is_a_table_and_else_a_paragraph_a_row() -> None:
    body = example("`GET /workers`")
    assert any("─" in line for line in lines_of(tables.fleet(body), 120))
    narrow = lines_of(tables.fleet(body), 60)
    assert not any("─" in line for line in narrow)
    assert narrow[0].startswith("· machine desktop, state ready")


def test_a_number_is_never_broken_in_a_table() -> None:
    lines = lines_of(tables.fleet(example("`GET /workers`")), 100)
    assert any("unknown of 1" in line for line in lines)
