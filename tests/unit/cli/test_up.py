from __future__ import annotations

import stat
from pathlib import Path

import pytest

from services.cli.up import welcome

HINT = "is not on your PATH"


def test_who_cannot_type_headrace_yet_is_told_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert HINT in welcome("http://127.0.0.1:8420", 1.0, True).plain
    command = tmp_path / "headrace"
    command.touch()
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    assert HINT not in welcome("http://127.0.0.1:8420", 1.0, True).plain


def test_another_router_than_the_usual_one_is_named_in_every_command() -> None:
    plain = welcome("http://127.0.0.1:9000", 1.0, True).plain
    assert plain.count("--router http://127.0.0.1:9000") == 2


def test_what_one_can_do_now_is_aligned() -> None:
    plain = welcome("http://127.0.0.1:8420", 1.0, True).plain
    lines = [line for line in plain.splitlines() if line.startswith(("  ask", "  see", "  OpenAI"))]
    starts = {line.index("headrace" if "headrace" in line else "http") for line in lines}
    assert len(lines) == 3
    assert len(starts) == 1
