"""Where a simulation's tables stand in a page of docs: between two marks, so that what people wrote around them stays."""

from __future__ import annotations

from pathlib import Path


def write_between(page: Path, start: str, end: str, text: str) -> None:
    """Put ``text`` between the marks; behind everything where the page has none."""
    before, _, rest = page.read_text(encoding="utf-8").partition(start)
    _, _, after = rest.partition(end)
    page.write_text(f"{before}{start}\n\n{text}\n{end}{after}", encoding="utf-8")
