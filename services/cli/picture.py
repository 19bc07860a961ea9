"""What was printed, as an SVG for the documentation.

Answers "how does the demo look?". The picture loads nothing from elsewhere: it uses the reader's own monospace font.
"""

from __future__ import annotations

import re
from pathlib import Path

from rich.console import Console

FONT_FACES = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""rich asks a content network for its font: readers that may not load it see gaps, and the network sees every reader."""
MONOSPACE = "Menlo, Consolas, DejaVu Sans Mono"


def save_picture(console: Console, file: Path, *, title: str) -> None:
    """Of a console that records."""
    svg = FONT_FACES.sub("", console.export_svg(title=title)).replace("Fira Code", MONOSPACE)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(svg)
