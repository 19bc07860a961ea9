"""The JSON examples of docs/http.md, by the path whose section they stand in: what the router's clients are built on."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

DOCUMENT = Path(__file__).parents[2] / "docs" / "http.md"


def example(heading: str, index: int = -1) -> dict[str, Any]:
    """The ``index``-th JSON block (by default the last, which is the answer) of the section with this heading."""
    sections = re.split(r"^##+ ", DOCUMENT.read_text(), flags=re.MULTILINE)
    section = next(text for text in sections if text.startswith(heading))
    blocks = re.findall(r"```json\n(.*?)```", section, flags=re.DOTALL)
    found: dict[str, Any] = json.loads(blocks[index])
    return found
