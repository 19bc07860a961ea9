"""What a part wrote is read of its present run alone, whatever form its lines have."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.cli.part_log import SAID_LINES, TAIL_LINES, PartLog


@pytest.fixture
def log(tmp_path: Path) -> PartLog:
    return PartLog(tmp_path / "logs" / "router.log")


def wrote(log: PartLog, *lines: str) -> None:
    with log.begin() as file:
        file.write("".join(f"{line}\n" for line in lines).encode())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"action":"ready","event":"ready"}', True),
        ('{"event": "ready", "action": "ready"}', True),  # as the standard library spaces it
        ('{"action":"router_listens","event":"ready"}', False),
        ('["ready"]', False),
        ("ready", False),
    ],
)
def test_it_is_ready_by_the_action_however_the_line_is_written(log: PartLog, line: str, says: bool) -> None:
    wrote(log, "Warning: of a library", line)
    assert log.says_ready is says


def test_a_former_run_counts_for_nothing(log: PartLog) -> None:
    wrote(log, '{"action":"ready","event":"ready"}', '{"level":"error","event":"of yesterday"}')
    assert log.says_ready
    wrote(log)
    assert not log.says_ready
    assert (log.last_words(), log.tail()) == ("", "nothing")


def test_the_last_error_goes_before_the_last_lines(log: PartLog) -> None:
    lines = [f"line {n}" for n in range(20)]
    wrote(log, *lines)
    assert log.last_words().splitlines() == lines[-TAIL_LINES:]
    assert log.tail() == " | ".join(lines[-SAID_LINES:])
    wrote(log, '{"level":"error","event":"cannot go on","error":"the disk is full"}', *lines)
    assert log.last_words() == "the disk is full"


def test_a_file_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    log = PartLog(tmp_path / "none.log")
    assert (log.says_ready, log.last_words(), log.tail()) == (False, "", "nothing")
