from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console

from services.cli.board import Board


def test_a_long_prompt_in_either_language_is_one_line_that_fits() -> None:
    console = Console(width=60, color_system=None)
    board = Board(console, ("fast",))
    board.add("日本で一番高い山は何ですか。" * 5)
    board.add("one\ntwo " * 30)
    with console.capture() as captured:
        console.print(board.render())
    lines = [line for line in captured.get().splitlines() if line.strip()]
    assert len(lines) == 4
    assert all(cell_len(line) <= 60 for line in lines)


def test_a_row_shows_what_is_known_of_it_so_far() -> None:
    console = Console(width=160, color_system=None)
    board = Board(console, ("fast", "slow"))
    row = board.add("What is the capital of Japan?")
    with console.capture() as captured:
        console.print(board.render())
    assert "…" in captured.get()
    assert "63.2" not in captured.get()
    row.machine, row.rate, row.total_s, row.state, row.domain = "fast", 63.2, 0.51, "completed", "general"
    with console.capture() as captured:
        console.print(board.render())
    assert all(part in captured.get() for part in ("general", "fast", "63.2", "0.51 s"))


def test_a_speed_that_the_server_did_not_report_is_unknown() -> None:
    console = Console(width=160, color_system=None)
    board = Board(console, ("fast",))
    board.add("hi").state = "completed"
    with console.capture() as captured:
        console.print(board.render())
    assert "unknown" in captured.get()


def test_in_a_pipe_each_prompt_is_one_line_when_it_ends() -> None:
    console = Console(width=80, color_system=None, force_terminal=False)
    board = Board(console, ("fast",))
    row = board.add("What is the capital of Japan?")
    row.machine, row.state, row.rate, row.domain = "fast", "completed", 63.2, "general"
    with console.capture() as captured:
        board.ended(row)
    assert captured.get() == " 1. fast: general, 63.2 tok/s, completed: What is the capital of Japan?\n"
