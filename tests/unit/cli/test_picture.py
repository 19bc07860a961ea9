from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from services.cli.picture import save_picture


def test_a_picture_shows_what_was_printed_and_loads_nothing(tmp_path: Path) -> None:
    console = Console(record=True, file=io.StringIO(), width=40)
    console.print("ready 日本語")
    save_picture(console, tmp_path / "images" / "demo.svg", title="demo")
    svg = (tmp_path / "images" / "demo.svg").read_text()
    assert "日本語" in svg
    assert "url(" not in svg.replace("url(#", "")
    assert "Fira Code" not in svg
