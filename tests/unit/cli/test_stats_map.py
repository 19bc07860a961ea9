"""Blocks with their numbers in them: the same in black and white, at any width, and honest about what is not there."""

from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from schemas.scales import COLOURS, step
from services.cli.stats_map import NOT_HELD, HeatMap
from services.router.http import stats_maps
from support import stats_pages
from support.wide_stats import household, wide


def lines(body: Any, width: int = 80) -> list[str]:
    return [line.plain.rstrip() for line in HeatMap(body).lines(width)]


def maps(**wanted: Any) -> list[Any]:
    return stats_pages.maps(household(), **wanted)


def test_speed_stands_by_model_and_domain_under_each_machine() -> None:
    shown = lines(maps()[0])
    assert shown[0].startswith("Speed") and shown[1].split() == ["desktop", "laptop"]
    at = shown.index("qwen3")
    code, maths = shown[at + 1].split(), shown[at + 2].split()
    assert code[0] == "code" and maths[0] == "maths"
    assert float(code[1]) == pytest.approx(83, rel=0.1) and maths[2].startswith("~")


def test_the_unknown_and_what_is_not_held_are_marks_and_their_meaning_is_said() -> None:
    speed, quality = maps()
    assert any(line.split()[-1:] == ["–"] for line in lines(speed))
    assert "? unknown: nothing like it was measured" in lines(quality)[-1]
    assert all("0" not in line.split()[1:] for line in lines(quality)[2:-1])
    assert NOT_HELD == stats_maps.NOT_HELD


def test_the_colour_is_that_of_the_fixed_scale_and_the_number_is_there_without_it() -> None:
    (line,) = [line for line in HeatMap(maps()[0]).lines(80) if line.plain.strip().startswith("maths")]
    block = next(span for span in line.spans if COLOURS[step("decode", 81.0)] in str(span.style))
    assert line.plain[block.start : block.end].strip() == "81.3"


def test_the_legend_of_the_colours_is_only_shown_where_there_are_colours() -> None:
    body = maps()[0]
    assert not any("below 5" in line for line in lines(body))
    assert any("below 5" in line.plain for line in HeatMap(body).lines(80, coloured=True))


def test_more_machines_than_fit_follow_in_bands() -> None:
    body = stats_pages.maps(wide(20, 2, 2))[0]
    shown = lines(body)
    assert sum("gpu-" in line for line in shown) == 3
    assert "more" not in shown[-1]
    assert all(f"gpu-{n:03d}" in " ".join(shown) for n in range(20))


def test_what_is_not_shown_at_all_is_said_in_words() -> None:
    body = stats_pages.maps(wide(200, 40, 8))[0]
    shown = lines(body)
    assert shown[-1] == "… 280 more rows and 192 more machines: choose with -m, -d or -w"
    assert len(shown) < 100


@pytest.mark.parametrize("width", [40, 80, 100])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    console = Console(width=width, color_system=None)
    for known in (household(), wide(200, 40, 8)):
        for body in stats_pages.maps(known):
            with console.capture() as captured:
                console.print(HeatMap(body))
            assert max(map(cell_len, captured.get().splitlines())) <= width


def test_a_long_machine_name_goes_over_lines_and_loses_nothing() -> None:
    body = maps()[0]
    body["columns"][0] = "a-workstation-under-the-desk.local"
    head = lines(body)[1:4]
    assert "".join(line.split()[0] for line in head) == "a-workstation-under-the-desk.local"


def test_nothing_measured_is_said() -> None:
    assert lines({**maps()[0], "rows": [], "columns": []})[1:] == ["Nothing was measured of this yet."]
