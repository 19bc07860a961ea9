"""What the documents point at exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.source import ROOT

PAGES = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.md", "docs/**/*.md", "nats/*.md", "services/**/*.md", "tests/**/*.md")
    for path in ROOT.glob(pattern)
)
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_leads_somewhere(page: str) -> None:
    targets = [link for link in LINK.findall((ROOT / page).read_text(encoding="utf-8")) if "://" not in link]
    assert [link for link in targets if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_the_readme_leads_to_every_page_of_the_documentation() -> None:
    """Directly, or through a folder that it leads to."""
    targets = {(ROOT / link).resolve() for link in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))}
    pages = [path for path in (ROOT / "docs").rglob("*.md") if not any(p in targets for p in (path, *path.parents))]
    assert [str(path.relative_to(ROOT)) for path in pages] == []


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"(?m)^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    named = {
        (page, name)
        for page in PAGES
        for name in re.findall(r"(?m)(?:`|^)make ([a-z0-9-]+)", Path(ROOT, page).read_text(encoding="utf-8"))
    }
    assert {(page, name) for page, name in named if name not in targets} == set()
