"""What a person sees, made from the very examples that docs/http.md gives."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from rich.console import Console, RenderableType

from services.cli import tables
from support.http_examples import example


def text_of(renderable: RenderableType) -> str:
    console = Console(width=220, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def line_with(word: str, renderable: RenderableType) -> str:
    return next(line for line in text_of(renderable).splitlines() if word in line)


def test_the_fleet_shows_who_is_free_and_who_is_stale() -> None:
    table = tables.fleet(example("`GET /workers`"))
    assert {"ready", "1 of 2", "now", "0 %", "qwen3, smollm2:135m"} <= set(cells(line_with("desktop", table)))
    assert "stale" in line_with("laptop", table)


def test_a_machine_that_reports_nothing_is_unknown_and_never_zero() -> None:
    row = cells(line_with("laptop", tables.fleet(example("`GET /workers`"))))
    assert row.count("unknown") == 4
    assert not [cell for cell in row if cell.startswith("0")]


def test_every_unknown_has_its_reason_under_the_table() -> None:
    words = text_of(tables.fleet(example("`GET /workers`")))
    assert "others_use: no_agent" in words
    assert "free, running, wait_s, credit_age_s: no credit was heard" in words


def test_a_machine_without_a_free_slot_is_never_free_now() -> None:
    body = example("`GET /workers`")
    body["workers"][0] |= {"free": 0, "wait_s": 0.0}
    row = cells(line_with("desktop", tables.fleet(body)))
    assert "not yet" in row and "now" not in row


def test_a_machine_without_its_model_server_is_shown_as_such_with_the_reason() -> None:
    body = example("`GET /workers`")
    why = {"wait_s": "backend down: connection refused"}
    body["workers"][0] |= {"state": "backend down", "free": 0, "wait_s": None, "unknown": why}
    table = tables.fleet(body)
    assert {"backend down", "unknown"} <= set(cells(line_with("desktop", table)))
    assert "wait_s: backend down: connection refused" in text_of(table)
    assert tables.STATE_STYLES["backend down"] == "red"


def test_an_empty_fleet_says_what_to_do() -> None:
    assert "headrace up" in text_of(tables.fleet({"workers": []}))


def test_models_show_their_holders_and_their_unequal_files() -> None:
    body = example("`GET /models`")
    assert {"qwen3", "desktop", "qwen3:8b", "5.20 GB", "Q4_K_M", "yes"} <= set(
        cells(line_with("qwen3:8b", tables.models(body)))
    )
    body["models"][0]["one_digest"] = False
    assert "different files under this name" in text_of(tables.models(body))


def test_a_paused_machine_says_for_how_long() -> None:
    body = example("`GET /workers`")
    body["workers"][0] |= {"state": "paused", "paused": "until 2026-11-29 22:05 UTC"}
    body["workers"][1] |= {"state": "silent", "paused": "until it is resumed"}
    table = tables.fleet(body)
    assert "paused until 2026-11-29 22:05 UTC" in line_with("desktop", table)
    assert "silent, paused until it is resumed" in line_with("laptop", table)
    for name in ("desktop", "laptop"):
        assert "no" in cells(line_with(name, table)) and "now" not in cells(line_with(name, table))


def test_a_table_never_changes_what_it_was_given() -> None:
    body: dict[str, Any] = example("`GET /workers`")
    before = deepcopy(body)
    text_of(tables.fleet(body))
    assert body == before


def cells(line: str) -> list[str]:
    """A row's cells: at least two spaces stand between them."""
    return [cell.strip() for cell in line.split("  ") if cell.strip()]
