"""What was measured, as a table: one row per (model, domain, machine), the planner's number first, then what it was seen to do.

Answers "how fast, how good, and how sure is that?" from the router's JSON (docs/http.md). A number that was not measured of just
this row is marked ``~``; what nothing is known of is "unknown", never a 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from rich.console import Group, RenderableType
from rich.text import Text

from services.cli import numbers
from services.cli.numbers import known
from services.cli.tables import grid

Json = dict[str, Any]
Which = Literal["both", "speed", "quality"]
NOBODY = "(any)"
"""A judgement of the model, wherever it ran."""
NO_MACHINE = "–"
FROM = {
    "cell": "measured",
    "model_worker": "other domains",
    "worker": "other models",
    "model_domain": "other machines",
    "model": "other machines",
    "family": "its family",
    "prior": "a guess",
}
"""Where a number comes from, by its source level."""
FROM_QUALITY = FROM | {"model": "other domains"}
LEGEND = "~ worked out, not measured of just this; `headrace stats --explain MODEL/DOMAIN/MACHINE` says how"
AS_IT_RAN = "tok/s is of one stream on the free machine; p50 and p95 are as it ran, beside other streams and users"
RESTARTS_SHOWN = 3
NAMES = ("model", "domain", "machine")
SPEED = ("answers>", "tok/s>", "±>", "p50>", "p95>", "from")
COLUMNS: dict[Which, tuple[str, ...]] = {
    "both": (*SPEED, "quality>", "± pts>", "judged>", "newest>"),
    "speed": (*SPEED, "reads>", "first|token>", "whole|answer>", "newest>"),
    "quality": ("quality>", "± pts>", "p50>", "p95>", "judged>", "from", "newest>"),
}
SPARE: dict[Which, tuple[tuple[str, ...], ...]] = {
    "both": (("± pts",), ("p50", "p95"), ("from",), ("judged",), ("newest",), ("answers",), ("±",)),
    "speed": (
        ("further stream", "others' weight"),
        ("whole answer", "first token"),
        ("reads",),
        ("p50", "p95"),
        ("from",),
        ("newest",),
        ("answers",),
        ("±",),
    ),
    "quality": (("p50", "p95"), ("newest",), ("from",), ("judged",), ("± pts",)),
}
"""What goes below its row where the terminal is narrow, in this order."""
NO_SPEED = "tok/s unknown: nothing like it was measured yet"
NO_QUALITY = (
    "quality unknown: no such answer was checked, judged or rated yet; `headrace bench` asks questions with a check"
)
LEARNED = {"slowdown": "further|stream>", "others_weight": "others'|weight>"}
"""Shown with the speeds once somebody saw it: it takes samples of two kinds."""


def stats(body: Json, which: Which = "both") -> RenderableType:
    rows = [row for row in body["rows"] if row["worker"] or which != "speed"]
    if not rows:
        return Text("Nothing was measured yet. Every answered prompt is a measurement: try `headrace ask`.")
    learned = [name for name in LEARNED if which == "speed" and any(_is_measured(row, name) for row in rows)]
    table = grid(*NAMES, *COLUMNS[which], *(LEARNED[name] for name in learned), spare=SPARE[which])
    for row in rows:
        machine = Text(row.get("worker_name") or row["worker"] or NOBODY, style="bold" if row["worker"] else "dim")
        more = (_own(row["fields"], name) for name in learned)
        table.add_row(row["model"], row["domain"], machine, *_CELLS[which](row), *more)
    return Group(table, *_below(body, rows, which))


def _differs(row: Json) -> bool:
    """Whether the planner's rate and what was seen are so far apart that a reader must wonder."""
    speed, own = row["expected"]["decode"], row["fields"]["decode"]
    return bool(speed["value"] and own["p50"] and not 0.8 <= own["p50"] / speed["value"] <= 1.25)


def _is_measured(row: Json, name: str) -> bool:
    return row["fields"][name]["value"] is not None


def _both(row: Json) -> tuple[str, ...]:
    quality = row["expected"]["quality"]
    return *_speeds(row), points(quality), points_off(quality), _judged(row), _age(row["age_s"])


def _speed(row: Json) -> tuple[str, ...]:
    own = (_own(row["fields"], name) for name in ("first_token", "total"))
    return *_speeds(row), rate(row["expected"]["prefill"]), *own, _age(row["expected"]["decode"]["age_s"])


def _quality(row: Json) -> tuple[str, ...]:
    quality, own = row["expected"]["quality"], row["fields"]["quality"]
    seen = ("" if own[rank] is None else _hundred(own[rank]) for rank in ("p50", "p95"))
    came = _from(quality, own["n"], FROM_QUALITY)
    return points(quality), points_off(quality), *seen, _judged(row), came, _age(quality["age_s"])


_CELLS: dict[Which, Callable[[Json], tuple[str, ...]]] = {"both": _both, "speed": _speed, "quality": _quality}


def _speeds(row: Json) -> tuple[str, ...]:
    """The columns of ``SPEED``."""
    speed, own = row["expected"]["decode"], row["fields"]["decode"]
    seen = ("" if own[rank] is None else numbers.plain(own[rank]) for rank in ("p50", "p95"))
    return _answers(row), rate(speed), spread(speed), *seen, _from(speed, row["ok_n"])


def rate(expected: Json) -> str:
    """``96.4``, ``~24.0``, or unknown where it is a guess."""
    return _marked(expected, numbers.plain)


def points(expected: Json) -> str:
    """``67`` of 100."""
    return _marked(expected, _hundred)


def _marked(expected: Json, write: Callable[[float], str]) -> str:
    if expected["value"] is None:
        return NO_MACHINE
    if expected["level"] == "prior":
        return numbers.UNKNOWN
    return f"{'' if expected['level'] == 'cell' else '~'}{write(expected['value'])}"


def spread(expected: Json) -> str:
    """``12 %``: how far off it may well be."""
    if expected["value"] is None or expected.get("spread") is None or expected["level"] == "prior":
        return ""
    return numbers.share(expected["spread"] / expected["value"])


def points_off(quality: Json) -> str:
    off: float | None = quality.get("spread")
    return "" if off is None else _hundred(off)


def _from(expected: Json, own_n: int, words: dict[str, str] = FROM) -> str:
    """With the number of samples, where they are not those of the row."""
    if expected["value"] is None:
        return NO_MACHINE
    told = words.get(expected["level"]) or str(expected["level"])
    return told if expected["n"] in (0, own_n) else f"{told} ({numbers.count(expected['n'])})"


def _own(fields: Json, name: str) -> str:
    """Of the cell's own samples."""
    field = fields[name]
    return known(field["value"], numbers.seconds if field["unit"] == "s" else lambda value: f"{value:.2f}")


def _answers(row: Json) -> str:
    return f"{row['ok_n']}" + (f" + {row['fail_n']}" if row["fail_n"] else "")


def _judged(row: Json) -> str:
    return numbers.count(row["fields"]["quality"]["n"])


def _age(age_s: float | None) -> str:
    return "never" if age_s is None else numbers.ago_roughly(age_s)


def _hundred(value: float) -> str:
    return f"{100 * value:.0f}"


RESTARTED = {
    "digest": "the model's file changed",
    "quantisation": "the model's quantisation changed",
    "drift": "the speed changed",
}


PAST = {"drift": "half a sample"}
"""What samples of a former state are worth (``schemas.evidence``), where it is not three at most."""


def restarted(row: Json) -> str:
    """``began anew 2 h ago, because the speed changed, 96.0 tok/s as it ran before; the 40 samples from then …``."""
    found = row["restarted"]
    before = "" if found["before"] is None else f", {numbers.plain(found['before'])} tok/s as it ran before"
    why = RESTARTED.get(found["why"]) or str(found["why"])
    count = f"{found['n']} sample{'' if found['n'] == 1 else 's'}"
    past = PAST.get(found["why"], "3 at most")
    return f"began anew {numbers.ago_roughly(found['age_s'])}, because {why}{before}; the {count} from then count as {past}"


def _below(body: Json, rows: list[Json], which: Which) -> list[RenderableType]:
    """What the marks mean, and what is not shown."""
    told = []
    if any("~" in cell for row in rows for cell in _CELLS[which](row)):
        told.append(LEGEND)
    if any(not row["worker"] for row in rows):
        told.append(f"{NOBODY} judged wherever it ran")
    if which != "quality" and any(rate(row["expected"]["decode"]) == numbers.UNKNOWN for row in rows):
        told.append(NO_SPEED)
    if which != "speed" and any(points(row["expected"]["quality"]) == numbers.UNKNOWN for row in rows):
        told.append(NO_QUALITY)
    changed = [row for row in rows if row.get("restarted")]
    told += [
        f"{row['model']} · {row['domain']} · {row.get('worker_name') or NOBODY} {restarted(row)}"
        for row in changed[:RESTARTS_SHOWN]
    ]
    if len(changed) > RESTARTS_SHOWN:
        told.append(f"… {len(changed) - RESTARTS_SHOWN} more began anew: `--json` has them")
    if which != "quality" and any(_differs(row) for row in rows):
        told.append(AS_IT_RAN)
    if body.get("next_offset") is not None:
        left = numbers.count(body["total"] - body["next_offset"])
        told.append(f"… {left} more rows: choose with -m, -d or -w, or `--page N`")
    return [Text(line, style="dim") for line in told]
