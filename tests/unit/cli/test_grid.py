from __future__ import annotations

from collections import Counter

import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType

from services.cli import stats_table, tables
from support.http_examples import example

PAGES = {
    "fleet": (tables.fleet, "`GET /workers`"),
    "stats": (stats_table.stats, "`GET /stats`"),
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


def test_where_there_is_room_it_is_a_table_and_else_a_narrower_one_with_the_rest_below_each_row() -> None:
    body = example("`GET /workers`")
    assert any("─" in line for line in lines_of(tables.fleet(body), 120))
    narrow = lines_of(tables.fleet(body), 50)
    assert not any("─" in line for line in narrow)
    assert narrow[0].split() == ["machine", "running", "free", "heard"]
    assert narrow[1].split() == ["desktop", "1", "of", "2", "now", "1.00", "s", "ago"]
    assert narrow[2].split()[:4] == ["state", "ready,", "backend", "ollama,"]
    assert lines_of(tables.fleet(body), 60)[1].split() == ["machine", "state", "running", "free", "others", "heard"]
    assert lines_of(tables.fleet(body), 24)[0].startswith("· machine desktop")


@pytest.mark.parametrize("page", PAGES)
def test_at_80_columns_every_table_is_still_one(page: str) -> None:
    render, heading = PAGES[page]
    body = example(heading)
    lines = lines_of(render(body), 80)
    assert not any(line.startswith("·") for line in lines)
    assert "machine" in lines[0] + lines[1] and "machine " not in "".join(lines[2:])


def test_no_word_is_broken_into_syllables_where_it_could_stand_below() -> None:
    assert any("needs gpu_inference" in line for line in lines_of(tables.models(example("`GET /models`")), 80))


def test_a_number_is_never_broken_in_a_table() -> None:
    lines = lines_of(tables.fleet(example("`GET /workers`")), 100)
    assert any("unknown of 1" in line for line in lines)
