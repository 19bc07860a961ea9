"""The judges' records as a table: who may judge, how that was found out, and what else than the answers explains its choices.

Answers "may I believe these verdicts?" from the router's JSON (docs/http.md). Every share stands with its number and its 95 %
interval; where nothing was seen it is "unknown", never a 0.
"""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from services.cli import numbers
from services.cli.tables import grid

Json = dict[str, Any]

COLUMNS = ("judge", "standing", "known pairs|right>", "pairs|counted>", "turned with|the order>", "first of|those>")
MORE = ("the longer|wins>", "its own|family wins>", "unreadable>", "no answer>", "as people|said>")
SPARE = (("no answer",), ("first of those",), ("unreadable",), ("its own family wins",), ("as people said",))
STANDINGS = {
    "sound": "sound",
    "untried": "not tested yet: counts nothing",
    "unsound": "failed its test: counts nothing",
}
FLAGS = {
    "position": "most of its verdicts turn with the order: they count nothing",
    "length": "likes longer answers: as much is taken off as that alone explains",
    "self": "favours its own family: not believed about it",
}


def judges(body: Json) -> RenderableType:
    rows = body["judges"]
    if not rows:
        return Text("No model was asked to judge yet. Shadow runs and `headrace compare --judge` ask one.")
    table = grid(*COLUMNS, *MORE, spare=SPARE)
    for row in rows:
        table.add_row(
            Text(_name(row), style="bold"),
            ", ".join((row["standing"], *row["flags"])),
            f"{row['shorter']['k'] + row['longer']['k']} of {row['shorter']['n'] + row['longer']['n']}",
            f"{row['counted']} of {row['pairs']}",
            *(share(row[name]) for name in ("turned", "first", "lengthy", "own", "malformed", "missing", "human")),
        )
    return Group(table, *_below(rows))


def share(found: Json) -> str:
    """``87 % (82–92) of 94``."""
    if not found["n"]:
        return "unknown"
    return f"{numbers.share(found['share'])} ({100 * found['low']:.0f}–{100 * found['high']:.0f}) of {found['n']}"


def _name(row: Json) -> str:
    return f"{row['model']} {row['digest'].removeprefix('sha256:')[:8]}" if row["digest"] else str(row["model"])


def _below(rows: list[Json]) -> list[Text]:
    lines = [Text("")]
    for row in rows:
        words = [STANDINGS[row["standing"]], row["why"], *(FLAGS[flag] for flag in row["flags"])]
        lines.append(Text(f"{row['model']}: {'; '.join(words)}", style="dim"))
    lines.append(Text("a share, its 95 % interval, of how many; `docs/judging.md` says what each means", style="dim"))
    return lines
