from __future__ import annotations

import pytest
from rich.cells import cell_len
from rich.console import Console

from services.cli.screen import HEIGHT, WIDTH, Rows, Screen, Section

TABLE = Rows(
    ("model", "machine", "cost>"), [("qwen3:8b", "desk", "-60.4"), ("日本語モデル", "laptop", "3.0")], ("→", "")
)


def shown(screen: Screen, width: int) -> list[str]:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(screen)
    return captured.get().splitlines()


def test_where_there_is_room_a_table_has_columns_numbers_to_the_right() -> None:
    assert shown(Screen([Section([], table=TABLE)]), 80) == [
        "   model         machine   cost",
        "→  qwen3:8b      desk     -60.4",
        "   日本語モデル  laptop     3.0",
    ]


@pytest.mark.parametrize("width", [12, 20, 30, 33])
def test_where_there_is_none_each_row_is_a_paragraph_and_no_cell_is_lost(width: int) -> None:
    lines = shown(Screen([Section([], table=TABLE)], height=None), width)
    assert all(cell_len(line) <= width for line in lines)
    whole = "".join(line.strip() for line in lines).replace(" ", "")
    for cell in ("qwen3:8b", "desk", "-60.4", "日本語モデル", "laptop", "3.0"):
        assert cell in whole


def test_a_word_longer_than_a_line_is_broken_and_not_cut() -> None:
    word = "x" * 50
    assert "".join(shown(Screen([Section([word], "Task")]), 20)).replace(" ", "") == f"Task{word}"


def test_lines_never_become_wider_than_people_like_to_read() -> None:
    lines = shown(Screen([Section(["word " * 60], "Then:")]), 300)
    assert max(map(len, lines)) <= WIDTH
    assert lines[1].startswith(" " * len("Then: "))


def test_what_does_not_fit_is_counted_and_the_last_sections_give_way_first() -> None:
    sections = [Section([f"a{n}" for n in range(20)], least=3), Section([f"b{n}" for n in range(20)], least=2)]
    lines = shown(Screen(sections, more="`--all`"), 80)
    assert len(lines) == HEIGHT
    assert [line for line in lines if line.startswith("b")] == ["b0", "b1", "b2 …"]
    assert lines[-1] == "… 17 more lines: `--all`"


@pytest.mark.parametrize("width", [20, 21, 24, 40])
def test_a_section_that_is_cut_says_so_within_its_width(width: int) -> None:
    lines = shown(Screen([Section(["some words " * 80], least=3)], height=4, more="--all"), width)
    assert lines[2].endswith(" …") and not lines[1].endswith("…")
    assert all(cell_len(line) <= width for line in lines)


def test_spare_columns_go_below_their_row_group_by_group_where_it_is_narrow() -> None:
    table = TABLE._replace(
        columns=("model", "machine", "the\ncost>"), spare=(("machine",), ("the cost",)), marks=("→", "")
    )
    assert shown(Screen([Section([], table=table)]), 30) == [
        "                   the",
        "   model          cost",
        "→  qwen3:8b      -60.4",
        "     machine desk",
        "   日本語モデル    3.0",
        "     machine laptop",
    ]
    assert shown(Screen([Section([], table=table)]), 20)[1:3] == ["→  qwen3:8b", "     machine desk,"]
    assert shown(Screen([Section([], table=table)]), 12)[0].startswith("→ model")


def test_everything_is_shown_to_who_asks_for_it() -> None:
    assert len(shown(Screen([Section([str(n) for n in range(100)])], height=None), 80)) == 100
