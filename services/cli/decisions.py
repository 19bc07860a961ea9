"""One decision for a terminal: what could have answered, what each would have cost, what was removed and why.

Answers "why this model on this machine?" from the router's JSON (docs/http.md). It decides nothing and computes no cost:
words and numbers are the router's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from services.cli import numbers
from services.cli.numbers import known
from services.cli.tables import TASK_STYLES, grid

Json = dict[str, Any]
MEASURED = "cell"
BORROWED = (
    "~ borrowed from other prompts or machines, or a starting guess: never measured for this domain on this machine"
)
DETAILS = ("model", "worker", "attempt", "failure", "reason", "outcome", "detail")


def candidates(rows: list[Json], names: dict[str, str] | None = None) -> RenderableType:
    """The candidates of a decision, best first. A number without own samples is marked as borrowed."""
    table = grid(
        *("", "model", "machine", "cost>", "total>", "wait>", "load>", "prefill>", "decode>"),
        *("decode|tok/s>", "quality>", "others|use>"),
    )
    for index, row in enumerate(rows):
        predicted = row["predicted"]
        table.add_row(
            Text("→", style="green bold") if index == 0 else "",
            row["model"],
            Text(_name(row, names), style="bold"),
            numbers.seconds(row["cost_s"]),
            known(predicted["total_s"], numbers.seconds),
            known(predicted["wait_s"], numbers.seconds),
            "loaded" if row["resident"] else known(predicted["load_s"], numbers.seconds),
            known(predicted["prefill_s"], numbers.seconds),
            known(predicted["decode_s"], numbers.seconds),
            measure(row["decode"], numbers.plain),
            measure(row["quality"], lambda value: f"{value:.2f}"),
            known(row["others_use"], numbers.share),
        )
    borrowed = any(row[name]["level"] != MEASURED for row in rows for name in ("decode", "quality"))
    return Group(table, Text(f"  {BORROWED}", style="dim")) if borrowed else table


def measure(value: Json, write: Callable[[float], str]) -> str:
    """``63.0``, or ``~63.0`` where the number is not from this very cell."""
    if value["value"] is None:
        return numbers.UNKNOWN
    return f"{'' if value['level'] == MEASURED else '~'}{write(value['value'])}"


def preview(body: Json) -> RenderableType:
    choice, domain = body["choice"], body["domain"]
    lines: list[RenderableType] = [Text(f"domain {domain['label']} (by {domain['method']})", style="dim")]
    if choice is None:
        lines.append(Text("Nobody could answer this now.", style="yellow"))
    else:
        lines.append(_chosen(choice["model"], choice.get("worker_name") or choice.get("worker"), choice["reason"]))
    return Group(*lines, *_parts(body["candidates"], body["removed"]), *bullets(body.get("words") or []))


def explanation(body: Json, *, names: dict[str, str] | None = None, with_events: bool = False) -> RenderableType:
    status, decision = body["status"], body["decision"] or {}
    state = Text.assemble(
        ("task ", "dim"),
        status["task"],
        " ",
        (status["state"], TASK_STYLES.get(status["state"], "")),
        (_times(status), "dim"),
    )
    parts = _parts(decision.get("candidates") or [], decision.get("removed") or [], names)
    events = [timeline(body["events"], names)] if with_events else []
    return Group(state, *bullets(body["words"]), *parts, *events)


def timeline(events: list[Json], names: dict[str, str] | None = None) -> RenderableType:
    table = grid("at (UTC)", "event", "by", "says")
    for event in events:
        told = (
            f"{key} {(names or {}).get(str(event[key]), event[key])}"
            for key in DETAILS
            if event.get(key) not in (None, "")
        )
        by = str(event.get("by", ""))
        table.add_row(numbers.clock(event["at"]), event["type"], (names or {}).get(by, by), ", ".join(told))
    return table


def bullets(words: list[str]) -> list[RenderableType]:
    return [Text(f"  • {line}") for line in words]


def _parts(rows: list[Json], removed: list[Json], names: dict[str, str] | None = None) -> list[RenderableType]:
    parts: list[RenderableType] = [candidates(rows, names)] if rows else []
    parts += [Text(f"  ✗ {row['model']} on {_name(row, names)}: {row['reason']}", style="dim") for row in removed]
    return parts


def _chosen(model: str, worker: str | None, reason: str) -> Text:
    machine = worker or "whoever is free first"
    return Text.assemble((model, "bold green"), " on ", (machine, "bold green"), f": {reason}" if reason else "")


def _name(row: Json, names: dict[str, str] | None) -> str:
    worker = row.get("worker")
    return str(row.get("worker_name") or (names or {}).get(str(worker)) or worker or "any machine")


def _times(status: Json) -> str:
    times = status.get("times") or {}
    told = [
        f"{words} {numbers.seconds(times[key])}"
        for key, words in (("queue_s", "waited"), ("first_token_s", "first token after"), ("total_s", "whole answer"))
        if times.get(key) is not None
    ]
    return f"  ({', '.join(told)})" if told else ""
