"""The queue for a terminal: each task's place, why it waits, when it may start, and why that got worse.

Answers "when is it my turn?" from the router's JSON (docs/http.md). Nothing is ever cut off: a wide terminal gets a table whose
cells fold, a narrow one a few lines for each task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from services.cli import numbers
from services.cli.numbers import known
from services.cli.tables import TASK_STYLES, grid

Json = dict[str, Any]
TABLE_COLUMNS = 140
"""Below this the table's cells would fold into columns of single syllables."""
OPEN = "open"
COLUMNS = ("place>", "task", "state", "client", "domain", "model", "machine", "waited>", "starts in>", "why")


class QueueBoard:
    """``names``: machines by id."""

    def __init__(self, body: Json, names: Mapping[str, str]) -> None:
        self._body, self._names = body, names

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        body = self._body
        yield Text(f"{body['waiting']} waiting, {body['released']} released, {body['running']} running")
        since = body.get("since_start") or {}
        if since.get("deviations"):
            told = f"{since['deviations']} of {since['releases']} attempts began on another machine than planned"
            yield Text(f"{told} since the router started", style="dim")
        if body["tasks"]:
            yield self._table() if options.max_width >= TABLE_COLUMNS else self._lines()

    def _table(self) -> RenderableType:
        table = grid(*COLUMNS)
        for task in body_tasks(self._body):
            table.add_row(
                numbers.count(task["position"]) if task.get("position") is not None else "",
                task["task"],
                Text(_state(task), style=TASK_STYLES.get(task["state"], "")),
                task.get("client") or "",
                task.get("domain") or numbers.UNKNOWN,
                task.get("model") or OPEN,
                self._machine(task),
                known(task.get("waited_s"), numbers.seconds),
                known(task.get("eta_s"), numbers.seconds_to_go) if task["state"] == "waiting" else "",
                "\n".join(_why(task)),
            )
        return table

    def _lines(self) -> RenderableType:
        lines: list[RenderableType] = []
        for task in body_tasks(self._body):
            place = f"{numbers.count(task['position'])}. " if task.get("position") is not None else ""
            state = Text(_state(task), style=TASK_STYLES.get(task["state"], ""))
            lines.append(Text.assemble((place, "bold"), (task["task"], "bold"), " ", state, overflow="fold"))
            told = [f"{task.get('client') or 'an unnamed client'}: {self._pair(task)}"]
            told.append(f"waited {known(task.get('waited_s'), numbers.seconds)}")
            if task["state"] == "waiting":
                told.append(f"starts in {known(task.get('eta_s'), numbers.seconds_to_go)}")
            lines += [Padding(Text(line, overflow="fold"), (0, 0, 0, 3)) for line in (", ".join(told), *_why(task))]
        return Group(*lines)

    def _pair(self, task: Json) -> str:
        model, machine = task.get("model"), self._machine(task)
        return "nothing chosen yet" if not model and machine == OPEN else f"{model or OPEN} on {machine}"

    def _machine(self, task: Json) -> str:
        worker = task.get("worker") or task.get("expected_worker")
        return self._names.get(str(worker), f"{worker} (gone)") if worker else OPEN


def body_tasks(body: Json) -> list[Json]:
    return list(body["tasks"])


def _state(task: Json) -> str:
    """A task that waits again says so."""
    attempt = task.get("attempt") or 0
    if task["state"] == "waiting":
        return f"waiting again, {attempt} tried" if attempt else "waiting"
    return f"{task['state']}, try {attempt}" if attempt > 1 else str(task["state"])


def _why(task: Json) -> list[str]:
    rises = [rise_words(rise) for rise in task.get("rises") or () if not _is_over(task, rise)]
    return [line for line in (task.get("reason") or "", *_runs(task), *rises) if line]


def _runs(task: Json) -> list[str]:
    """How long it has run, and about when it ends, or that it should have."""
    if task["state"] != "running" or task.get("ran_s") is None:
        return []
    if task.get("late_s") is not None:
        return [f"has run {numbers.seconds(task['ran_s'])}, {numbers.seconds(task['late_s'])} longer than predicted"]
    return [f"has run {numbers.seconds(task['ran_s'])}, ends in {known(task.get('ends_s'), _about)}"]


def _about(seconds: float) -> str:
    return f"about {numbers.seconds(seconds)} (predicted)"


def _is_over(task: Json, rise: Json) -> bool:
    """By now it is as good as it was before."""
    now, before = task.get(rise["of"]), rise["before"]
    return now is not None and before is not None and now <= before


def rise_words(rise: Json) -> str:
    """``place 1 → 3, joined_ahead: 2 tasks of webui joined ahead``."""
    before, after = rise["before"], rise["after"]
    if rise["of"] == "position":
        moved = f"place {numbers.count(after)} again" if before is None else f"place {before:.0f} → {after:.0f}"
    else:
        moved = f"start in {numbers.seconds(before)} → {known(after, numbers.seconds)}"
    return f"{moved}, {rise['code']}: {rise['words']}"
