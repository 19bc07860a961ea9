"""The queue as people see it, on wide and narrow terminals."""

from __future__ import annotations

import re
from typing import Any

import pytest
from rich.console import Console

from services.cli.queue_board import QueueBoard
from support.http_examples import example

TASK = "01kbq0zkk8n9s4m5v2d3xw7e6r"
ROW: dict[str, Any] = {
    "task": TASK,
    "state": "waiting",
    "position": 3,
    "client": "open-webui-of-the-family",
    "domain": "code",
    "model": "qwen3-coder:30b-instruct",
    "expected_worker": "w-7f3a",
    "attempt": 1,
    "waited_s": 12.5,
    "eta_s": 34.0,
    "reason": "busy: every machine that could answer is busy; desktop is free in about 34.0 s",
    "rises": [
        {"of": "eta_s", "before": 20.0, "after": 40.0, "code": "died", "words": "laptop is not heard any more"},
        {"of": "position", "before": 1, "after": 3, "code": "joined_ahead", "words": "2 tasks of me joined ahead"},
    ],
}


def shown(width: int, *rows: dict[str, Any]) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(
            QueueBoard({"waiting": len(rows), "released": 0, "running": 0, "tasks": rows}, {"w-7f3a": "desktop"})
        )
    return captured.get()


@pytest.mark.parametrize("width", [40, 60, 80, 99, 139])
def test_a_narrow_terminal_cuts_nothing(width: int) -> None:
    words = shown(width, ROW)
    squeezed = re.sub(r"\s+", "", words)
    for value in (
        TASK, "3.", ROW["client"], ROW["model"], "desktop", "12.5 s", "34.0 s", ROW["reason"],
        "place 1 → 3, joined_ahead: 2 tasks of me joined ahead", "start in 20.0 s → 40.0 s, died: laptop is not heard any more",
    ):  # fmt: skip
        assert re.sub(r"\s+", "", value) in squeezed, value
    assert "…" not in words
    assert max(map(len, words.splitlines())) <= width


@pytest.mark.parametrize("width", [140, 160, 220])
def test_a_wide_terminal_gets_a_table_that_cuts_nothing_either(width: int) -> None:
    words = shown(width, ROW)
    assert "starts in" in words.splitlines()[1] or "starts" in words
    assert "…" not in words
    letters = re.sub(r"[^a-z0-9]", "", words.lower())
    for syllable in ("desktop", "joined", "laptop", "waiting", "12.5s".replace(".", "")):
        assert syllable in letters or width < 160


def test_machines_are_called_by_their_names_and_a_task_that_waits_again_says_so() -> None:
    words = shown(220, ROW)
    assert "desktop" in words and "w-7f3a" not in words
    assert "waiting again, 1 tried" in words


def test_the_example_of_the_documentation_is_shown_with_its_place_and_reason() -> None:
    body = example("`GET /queue`")
    console = Console(width=220, color_system=None)
    with console.capture() as captured:
        console.print(QueueBoard(body, {}))
    words = captured.get()
    assert words.startswith("2 waiting, 0 released, 1 running")
    assert body["tasks"][0]["reason"] in words and "joined_ahead" in words


def test_a_rise_that_is_made_good_again_is_not_shown_any_more() -> None:
    words = shown(80, ROW | {"eta_s": 19.0})
    assert "start in 20.0 s" not in words and "place 1 → 3" in words


@pytest.mark.parametrize("width", [80, 220])
def test_what_runs_says_how_long_and_about_when_it_ends(width: int) -> None:
    runs = ROW | {"state": "running", "reason": None, "rises": [], "ran_s": 4.0, "ends_s": 6.0}
    assert "has run 4.00 s, ends in about 6.00 s (predicted)" in " ".join(shown(width, runs).split())
    assert "ends in unknown" in " ".join(shown(width, runs | {"ends_s": None}).split())
    late = " ".join(shown(width, runs | {"ran_s": 22.0, "ends_s": 3.3, "late_s": 12.0}).split())
    assert "has run 22.0 s, 12.0 s longer than predicted" in late and "ends in" not in late


def test_an_empty_queue_is_one_line() -> None:
    assert shown(80).strip() == "0 waiting, 0 released, 0 running"


def test_a_task_that_nobody_can_answer_yet_is_on_no_machine() -> None:
    undecided = ROW | {"model": None, "worker": None, "expected_worker": None}
    assert f"{ROW['client']}: nothing chosen yet, waited" in shown(80, undecided)
    assert f"{ROW['client']}: {ROW['model']} on open, waited" in shown(80, undecided | {"model": ROW["model"]})


def test_an_unknown_start_is_unknown_and_not_zero() -> None:
    assert "starts in unknown" in shown(80, ROW | {"eta_s": None})
    assert "starts in less than 1 s" in shown(80, ROW | {"eta_s": 0.0, "rises": []})


def test_attempts_that_began_elsewhere_than_planned_are_told_once_there_are_any() -> None:
    body = {"waiting": 0, "released": 0, "running": 0, "tasks": [], "since_start": {"releases": 412, "deviations": 3}}
    console = Console(width=120, color_system=None)
    with console.capture() as captured:
        console.print(QueueBoard(body, {}))
    assert "3 of 412 attempts began on another machine than planned" in captured.get()
    with console.capture() as captured:
        console.print(QueueBoard(body | {"since_start": {"releases": 412, "deviations": 0}}, {}))
    assert "planned" not in captured.get()


def test_a_machine_that_is_gone_has_only_its_id_left_and_is_said_to_be_gone() -> None:
    assert "w-gone (gone)" in shown(80, ROW | {"expected_worker": "w-gone"})
