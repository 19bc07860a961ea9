"""The heat maps as one SVG for a report: blocks with their numbers in them, a legend, and in words what was left out.

Pure. Text stays text, the fonts are the reader's own, nothing is loaded from elsewhere, and the page follows the reader's light
or dark. A chart library would bring its fonts or its scripts, and the whole is rectangles.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element, SubElement, tostring

from schemas.scales import COLOURS, INKS, bounds_words, step
from services.router.http.stats_maps import NOT_HELD, Block, HeatMap

STYLE = """
svg { --ink: #1f2328; --soft: #59636e; --paper: #ffffff; --line: #8c959f }
@media (prefers-color-scheme: dark) { svg { --ink: #e6edf3; --soft: #9198a1; --paper: #0d1117; --line: #6e7681 } }
text { font-family: system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif; font-size: 13px; fill: var(--ink) }
.title { font-size: 16px; font-weight: 600 }
.soft { fill: var(--soft) }
.number { text-anchor: middle; font-variant-numeric: tabular-nums }
.column { text-anchor: middle }
.model { font-weight: 600 }
.paper { fill: var(--paper) }
.unknown { fill: none; stroke: var(--line); stroke-dasharray: 3 3 }
"""
MARGIN, LINE, HEIGHT, GAP = 20, 20, 28, 3
CHAR, BOLD = 7.4, 8.4
"""A letter's mean width at 13 px, on the wide side."""
LABEL_MOST, COLUMN_MOST, COLUMN_LEAST = 42, 20, 9
"""In letters. What is longer is cut here; a pointer held over it shows the whole."""
LEGEND = 96
MARKS = "~ not measured of just this, but worked out · ? nothing like it was measured · – not held there"


def svg(maps: tuple[HeatMap, ...], note: str) -> str:
    """``note`` is the last line: of when and where this is."""
    root = Element("svg", xmlns="http://www.w3.org/2000/svg", role="img")
    SubElement(root, "title").text = "; ".join(found.title for found in maps)
    SubElement(root, "style").text = STYLE
    SubElement(root, "rect", {"class": "paper", "width": "100%", "height": "100%"})
    top, width = MARGIN, 2 * MARGIN + LEGEND * len(COLOURS)
    for found in maps:
        top, right = _map(root, found, top)
        width = max(width, right + MARGIN)
    for line in (MARKS, note):
        top += LINE
        _text(root, line, MARGIN, top, "soft")
    width = max(width, 2 * MARGIN + round(CHAR * max(len(MARKS), len(note))))
    root.set("viewBox", f"0 0 {width} {top + MARGIN}")
    root.set("width", str(width))
    root.set("height", str(top + MARGIN))
    return tostring(root, encoding="unicode")


def _map(root: Element, found: HeatMap, top: int) -> tuple[int, int]:
    """Drawn from ``top`` down; where it ends, below and to the right."""
    top += LINE
    _text(root, found.title, MARGIN, top, "title")
    if not found.rows or not found.columns:
        _text(root, "Nothing was measured of this yet.", MARGIN, top + LINE, "soft")
        return top + 2 * LINE, MARGIN
    labels = [(row.model, row.domain or "") for row in found.rows]
    left = MARGIN + round(BOLD * min(max(len(f"{model} {domain}") for model, domain in labels) + 1, LABEL_MOST + 1))
    wide = round(CHAR * min(max(COLUMN_LEAST, *(len(name) + 1 for name in found.columns)), COLUMN_MOST))
    top += LINE + 4
    for at, name in enumerate(found.columns):
        _text(root, name, left + at * wide + wide // 2, top, "column", most=COLUMN_MOST - 1)
    top += 8
    before = ""
    for (model, domain), row in zip(labels, found.rows, strict=True):
        _label(root, "" if model == before else model, domain, left, top + 18)
        before = model
        for at, block in enumerate(row.blocks):
            _block(root, found, block, left + at * wide, top, wide - GAP)
        top += HEIGHT
    top += 4
    if left_out := _left_out(found):
        top += LINE
        _text(root, left_out, MARGIN, top, "soft")
    return _legend(root, found, top), left + wide * len(found.columns)


def _label(root: Element, model: str, domain: str, right: int, y: int) -> None:
    """The model to the left, its domain to the right, against the blocks."""
    room = LABEL_MOST - (len(domain) + 1 if domain else 0)
    if model:
        _text(root, model, MARGIN, y, "model", most=room)
    if domain:
        _text(root, domain, right - 8, y, "soft").set("text-anchor", "end")


def _block(root: Element, found: HeatMap, block: Block, x: int, y: int, wide: int) -> None:
    middle, base = x + wide // 2, y + 18
    where = {"x": str(x), "y": str(y), "width": str(wide), "height": str(HEIGHT - GAP), "rx": "3"}
    if block.value is None:
        if block.reason != NOT_HELD:
            SubElement(root, "rect", {"class": "unknown", **where})
        _text(root, "–" if block.reason == NOT_HELD else "?", middle, base, "number soft")
        return
    colour = step(found.of, block.value)
    SubElement(root, "rect", {"fill": COLOURS[colour], **where})
    _text(root, written(found, block), middle, base, "number").set("style", f"fill: {INKS[colour]}")


def written(found: HeatMap, block: Block) -> str:
    """``96.4``, ``~24``: three digits, and a mark where it was worked out."""
    assert block.value is not None
    value = block.value * 100 if found.of == "quality" else block.value
    digits = f"{value:.1f}" if found.of == "decode" and value < 100 else f"{value:.0f}"
    return digits if block.level == "cell" else f"~{digits}"


def _left_out(found: HeatMap) -> str:
    """What is not in the picture, and how to get it."""
    rows = found.rows_total - len(found.rows)
    columns = found.columns_total - len(found.columns)
    what = "machine" if found.of == "decode" else "domain"
    told = [
        f"{count} more {name}{'' if count == 1 else 's'}"
        for count, name in ((rows, "row"), (columns, what))
        if count > 0
    ]
    return f"{' and '.join(told)} not shown: choose by model, domain or machine" if told else ""


def _legend(root: Element, found: HeatMap, top: int) -> int:
    top += 8
    for at, words in enumerate(bounds_words(found.of)):
        x = MARGIN + at * LEGEND
        SubElement(
            root,
            "rect",
            {"fill": COLOURS[at], "x": str(x), "y": str(top), "width": "12", "height": "12", "rx": "2"},
        )
        _text(root, words, x + 17, top + 11, "soft")
    return top + LINE + 8


def _text(root: Element, words: str, x: int, y: int, kind: str, *, most: int | None = None) -> Element:
    text = SubElement(root, "text", {"x": str(x), "y": str(y), "class": kind})
    if most is not None and len(words) > most:
        SubElement(text, "title").text = words
        text.text, text[0].tail = None, f"{words[: most - 1]}…"
    else:
        text.text = words
    return text
