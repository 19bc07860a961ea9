"""What the table says of a row: the planner's number, how sure, from where; nothing unknown looks like a number."""

from __future__ import annotations

from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType

from services.cli import stats_table
from services.cli.stats_table import Which
from support import stats_pages
from support.http_examples import example
from support.wide_stats import household, wide

WHICH: tuple[Which, ...] = ("both", "speed", "quality")


def text_of(renderable: RenderableType, width: int = 220) -> str:
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def cells(body: Any, *words: str, which: Which = "both") -> list[str]:
    """The cells of the only line with these words: at least two spaces stand between them."""
    lines = [
        line
        for line in text_of(stats_table.stats(body, which)).splitlines()
        if all(word in line for word in words) and "began anew" not in line
    ]
    (line,) = lines
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_a_row_has_the_planners_number_first_and_how_sure_it_is() -> None:
    row = cells(example("`GET /stats`"), "desktop")
    assert row == [
        "qwen3",
        "code",
        "desktop",
        "30 + 1",
        "95.1",
        "12 %",
        "96.0",
        "101",
        "measured",
        "~62",
        "25",
        "0",
        "40 s ago",
    ]


def test_more_speeds_and_more_of_quality_are_shown_when_asked_for_alone() -> None:
    body = example("`GET /stats`")
    assert {"2880", "0.14 s", "3.20 s"} <= set(cells(body, "desktop", which="speed"))
    assert cells(body, "desktop", which="quality") == [
        "qwen3",
        "code",
        "desktop",
        "~62",
        "25",
        "0",
        "other domains (9)",
        "2 h ago",
    ]


def test_what_further_streams_cost_is_shown_once_somebody_saw_it() -> None:
    body = example("`GET /stats`")
    assert "0.85" in cells(body, "desktop", which="speed")
    assert "weight" not in text_of(stats_table.stats(body, "speed"))  # others' use was never seen
    body["rows"][0]["fields"]["slowdown"].update(value=None, n=0)
    assert "further" not in text_of(stats_table.stats(body, "speed"))


def test_a_guess_is_unknown_and_what_was_worked_out_is_marked() -> None:
    body = stats_pages.rows(household(), guesses=True)
    row = cells(body, "new-model", "laptop", "code")
    assert row[:5] == ["new-model", "code", "laptop", "0", "~15.6"] and "never" in row
    body["rows"] = [row for row in body["rows"] if row["model"] == "new-model"]
    body["rows"][0]["expected"]["decode"].update(level="prior", n=0)
    body["rows"][0]["expected"]["quality"].update(level="prior", n=0)
    assert cells(body, "desktop", "code").count("unknown") == 2


def test_each_unknown_has_its_reason_below_the_table_and_only_there_where_it_is_shown() -> None:
    body = stats_pages.rows(household(), guesses=True)
    for row in body["rows"]:
        row["expected"]["quality"].update(level="cell"), row["expected"]["decode"].update(level="cell")
    assert "unknown:" not in text_of(stats_table.stats(body))
    body["rows"][0]["expected"]["quality"].update(level="prior", n=0)
    assert "quality unknown: no such answer was checked" in text_of(stats_table.stats(body))
    assert "unknown:" not in text_of(stats_table.stats(body, "speed"))
    body["rows"][0]["expected"]["decode"].update(level="prior", n=0)
    assert "tok/s unknown: nothing like it" in text_of(stats_table.stats(body, "speed"))


def test_a_judgement_without_a_machine_has_no_speed() -> None:
    body = stats_pages.rows(household())
    row = cells(body, "writing")
    assert row[:5] == ["qwen3", "writing", "(any)", "0", "–"]
    assert "(any) judged wherever it ran" in text_of(stats_table.stats(body))
    assert "writing" not in text_of(stats_table.stats(body, "speed"))


def test_what_began_anew_is_told_with_the_reason_and_what_was_before() -> None:
    body = example("`GET /stats`")
    told = "qwen3 · code · desktop began anew 2 h ago, because the speed changed, 31.0 tok/s as it ran before"
    assert told in text_of(stats_table.stats(body))
    body["rows"] *= 5
    assert "… 2 more began anew" in text_of(stats_table.stats(body))
    body["rows"] = [body["rows"][0] | {"restarted": None}]
    assert "anew" not in text_of(stats_table.stats(body))


def test_a_rate_far_from_what_was_seen_is_explained() -> None:
    body = example("`GET /stats`")
    assert stats_table.AS_IT_RAN not in text_of(stats_table.stats(body))
    body["rows"][0]["fields"]["decode"]["p50"] = 45.0
    assert stats_table.AS_IT_RAN in text_of(stats_table.stats(body))


def test_a_mark_is_explained_only_where_it_is_seen() -> None:
    body = example("`GET /stats`")
    assert "~ worked out" in text_of(stats_table.stats(body))
    assert "~ worked out" not in text_of(stats_table.stats(body, "speed"))
    body["rows"][0]["fields"]["decode"]["p50"] = 45.0
    assert stats_table.AS_IT_RAN not in text_of(stats_table.stats(body, "quality"))


def test_no_statistics_say_how_to_get_some() -> None:
    assert "headrace ask" in text_of(stats_table.stats({"rows": []}))


def test_a_page_says_how_many_more_there_are() -> None:
    body = stats_pages.rows(wide(20, 3, 2), limit=50)
    assert "… 70 more rows: choose with -m, -d or -w, or `--page N`" in text_of(stats_table.stats(body))


@pytest.mark.parametrize("width", [60, 80, 100, 160])
@pytest.mark.parametrize("which", WHICH)
def test_no_line_is_wider_than_the_terminal_and_no_cell_is_lost(which: Which, width: int) -> None:
    body = stats_pages.rows(household(), guesses=True)
    shown = text_of(stats_table.stats(body, which), width)
    assert max(map(cell_len, shown.splitlines())) <= width
    squeezed = "".join(shown.split())
    for row in body["rows"]:
        assert row["model"] in squeezed
    for cell in text_of(stats_table.stats(body, which), 300).split():
        assert cell in squeezed or set(cell) <= {"─"}, cell
