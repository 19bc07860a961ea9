"""The fleet and its models as tables for a terminal.

Answers "how does the router's JSON read?" (docs/http.md). Takes what the router answered, returns something to print.
A null is "unknown" with its reason, never a 0 and never an empty cell.
"""

from __future__ import annotations

from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.text import Text

from services.cli import numbers
from services.cli.findings import JOIN_HINT
from services.cli.grid import Grid
from services.cli.numbers import known

Json = dict[str, Any]
STATE_STYLES = {
    "ready": "green",
    "draining": "yellow",
    "paused": "yellow",
    "stale": "yellow",
    "silent": "red",
    "backend down": "red",
}
TASK_STYLES = {"completed": "green", "running": "cyan", "failed": "red", "dead": "red", "cancelled": "yellow"}


def grid(*columns: str, spare: tuple[tuple[str, ...], ...] = ()) -> Grid:
    """A plain table. A column's name may end in ``>`` (numbers: aligned to the right, never broken) or ``~`` (text that gets the
    room that is left and is cut off there); ``|`` breaks the name."""
    cut = any(name.endswith("~") for name in columns)
    table = Grid(spare=spare, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), expand=cut)
    for name in columns:
        is_number, is_cut = name.endswith(">"), name.endswith("~")
        table.add_column(
            name.rstrip(">~").replace("|", "\n"),
            justify="right" if is_number else "left",
            no_wrap=is_number or cut,
            overflow="ellipsis" if is_cut else "fold",
            ratio=1 if is_cut else None,
        )
    return table


def fleet(body: Json) -> RenderableType:
    workers = body["workers"]
    if not workers:
        return Text(f"No machine has joined yet; {JOIN_HINT}.")
    table = grid(
        *("machine", "state", "backend", "running>", "free>", "used by|others>", "loaded", "models", "heard>"),
        spare=(("models", "loaded"), ("backend",), ("used by others",), ("state",)),
    )
    for worker in workers:
        table.add_row(*_worker(worker))
    return Group(table, *_reasons(workers))


def _worker(worker: Json) -> list[RenderableType]:
    state = worker["state"]
    resident = worker["resident"]
    return [
        Text(worker["name"], style="bold"),
        Text(_pause(worker) or state, style=STATE_STYLES.get(state, "")),
        worker["backend"] if worker["local"] else f"{worker['backend']} (remote)",
        f"{known(worker['running'], numbers.count)} of {worker['slots']}",
        _free(worker),
        known(worker["others_use"], numbers.share),
        numbers.UNKNOWN if resident is None else ", ".join(sorted(resident)) or "none",
        ", ".join(worker["models"]) or "none",
        known(worker["credit_age_s"], numbers.ago),
    ]


def _free(worker: Json) -> str:
    """When it takes the next task: one that was taken out takes none."""
    if worker.get("paused") or worker["state"] in ("paused", "draining"):
        return "no"
    return known(
        worker["wait_s"],
        lambda value: f"in {numbers.seconds(value)}" if value else "now" if worker["free"] else "not yet",
    )


def _pause(worker: Json) -> str:
    """``paused until 2026-11-29 22:05 UTC``; a silent one is silent as well."""
    paused = worker.get("paused")
    return f"{'' if worker['state'] == 'paused' else worker['state'] + ', '}paused {paused}" if paused else ""


def _reasons(workers: list[Json]) -> list[Text]:
    """One line for each machine that does not say everything: which values, and why."""
    lines = []
    for worker in workers:
        by_reason: dict[str, list[str]] = {}
        for name, reason in (worker.get("unknown") or {}).items():
            by_reason.setdefault(reason, []).append(name)
        if by_reason:
            told = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in by_reason.items())
            lines.append(Text(f"{worker['name']} does not say everything: {told}", style="dim"))
    return lines


def models(body: Json) -> RenderableType:
    table = grid(
        *("model", "machine", "its name there", "size>", "quantisation", "context>", "loaded", "needs"),
        spare=(("its name there", "quantisation", "needs"), ("context",)),
    )
    for model in body["models"]:
        for index, holder in enumerate(model["holders"]):
            table.add_row(
                Text(model["name"], style="bold") if index == 0 else "",
                holder["worker_name"] if holder["alive"] else f"{holder['worker_name']} (silent)",
                holder["backend_name"],
                known(holder["bytes"], numbers.size),
                holder["quantisation"] or numbers.UNKNOWN,
                known(holder["context"], numbers.count),
                {True: "yes", False: "no", None: numbers.UNKNOWN}[holder["resident"]],
                model["capability"] if index == 0 else "",
            )
    lines: list[RenderableType] = [table]
    lines += [
        Text(f"{model['name']}: its holders have different files under this name", style="yellow")
        for model in body["models"]
        if model["one_digest"] is False
    ]
    if body.get("virtual"):
        lines.append(Text(f"Also accepted: {', '.join(body['virtual'])}", style="dim"))
    return Group(*lines)
