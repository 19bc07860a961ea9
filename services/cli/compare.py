"""Answers beside each other: one prompt's comparison as it comes in.

Answers "which of them says it best, and what did each cost?". On a terminal the answers grow in columns; elsewhere each is
printed whole when it has ended. What was predicted always stands beside what it took.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from services.cli import numbers
from services.cli.ask import ENDS, REMARKS
from services.cli.numbers import known
from services.cli.sse import ServerEvent
from services.cli.tables import grid

Json = dict[str, Any]
PANEL_LEAST = 34
"""A narrower column breaks each line of prose twice."""
PANEL_LINES = 8
"""Of an answer that is still growing; the whole stands there when all have ended."""


class Comparison:
    """Everything that was told so far: ``hear`` one event after the other. ``ends`` has the entries as they ended."""

    def __init__(self) -> None:
        self.id = ""
        self.entries: dict[int, Json] = {}
        self.removed: list[Json] = []
        self.warning: str | None = None
        self.judged: list[Json] = []
        self.texts: dict[int, str] = {}
        self.thought: set[int] = set()
        self.states: dict[int, Json] = {}
        self.ends: dict[int, Json] = {}
        self.error: Json | None = None
        self.is_done = False

    def hear(self, event: ServerEvent) -> None:
        data: Json = msgspec.json.decode(event.data)
        entry = int(data.get("entry", 0))
        match event.name:
            case "compare":
                self.id, self.removed, self.warning = data["compare"], data["removed"], data.get("warning")
                self.entries = {row["entry"]: row for row in data["entries"]}
            case "status":
                self.states[entry] = data
            case "token":
                self.texts[entry] = self.texts.get(entry, "") + data.get("text", "")
                if data.get("thinking"):
                    self.thought.add(entry)
            case "restart":
                self.texts[entry] = ""
            case "end":
                self.ends[entry] = data
                if data.get("answer"):
                    self.texts[entry] = data["answer"]["text"]
            case "judged":
                self.judged.append(data)
            case "error":
                self.error = data
            case "done":
                self.is_done = True

    @property
    def rivals(self) -> int:
        """How many models have answered."""
        ended = {n for n, end in self.ends.items() if end["status"]["state"] == "completed"}
        return len({self.entries[n]["model"] for n in ended})

    def title(self, entry: int) -> str:
        row = self.entries[entry]
        return f"{entry}  {row['model']} on {row['worker_name']}"


def columns(comparison: Comparison, width: int, *, lines: int | None = PANEL_LINES) -> RenderableType:
    """The answers side by side, as many as fit; ``lines`` None shows them whole."""
    if not comparison.entries:
        return Text("asking…", style="dim")
    beside = max(1, min(len(comparison.entries), width // PANEL_LEAST))
    panels = [_panel(comparison, entry, width // beside - 1, lines) for entry in sorted(comparison.entries)]
    return Columns(panels, padding=(0, 1), expand=False)


def _panel(comparison: Comparison, entry: int, width: int, lines: int | None) -> Panel:
    text = comparison.texts.get(entry, "").strip()
    shown = Text(text) if text else Text(state(comparison, entry), style="dim italic")
    if lines is not None and text:
        tail = text.splitlines()[-lines:]
        room = lines * max(10, width - 4)
        shown = Text("\n".join(tail)[-room:])
    foot = "" if entry not in comparison.ends else foot_words(comparison, entry, width - 4)
    style = "green" if _is_good(comparison.ends.get(entry)) else "yellow" if entry in comparison.ends else "dim"
    return Panel(
        shown, title=Text(comparison.title(entry), style="bold"), title_align="left", subtitle=foot or None,
        subtitle_align="left", border_style=style, width=width,
    )  # fmt: skip


def state(comparison: Comparison, entry: int) -> str:
    """Instead of a text: why there is none (yet)."""
    end = comparison.ends.get(entry)
    if end is not None:
        status = end["status"]
        if status["state"] != "completed":
            why = ": ".join(str(part) for part in (status.get("failure"), status.get("detail")) if part)
            return f"it {ENDS.get(status['state'], status['state'])}{f': {why}' if why else ''}"
        return "an empty answer: it only thought" if _thought(end) else "an empty answer"
    status = comparison.states.get(entry) or {}
    if entry in comparison.thought:
        return "thinking…"
    if status.get("state") == "running":
        return "reading the prompt…"
    return f"waiting: {status.get('reason') or 'no machine is free'}"


def foot_words(comparison: Comparison, entry: int, width: int | None = None) -> str:
    """``3.20 s (4.00 s predicted), 63.2 tok/s``; where that is too wide, what the table below says too goes."""
    spent = comparison.ends[entry].get("spent")
    if spent is None:
        return ""
    predicted = comparison.entries[entry]["predicted"].get("total_s")
    words = f"{known(spent['took_s'], numbers.seconds)} ({known(predicted, numbers.seconds)} predicted)"
    whole = words if spent["tokens_per_s"] is None else f"{words}, {numbers.rate(spent['tokens_per_s'])}"
    if width is None or len(whole) <= width:
        return whole
    return words if len(words) <= width else known(spent["took_s"], numbers.seconds)


def plain(comparison: Comparison, entry: int) -> str:
    """One ended answer for a pipe: a line about it, then its text."""
    foot = foot_words(comparison, entry)
    about = f"{comparison.title(entry)}{f': {foot}' if foot else ''}; task {comparison.entries[entry]['task']}"
    remark = REMARKS.get(str(comparison.ends[entry]["status"].get("outcome")))
    text = comparison.texts.get(entry, "").strip() or f"({state(comparison, entry)})"
    return "\n".join(filter(None, (f"== {about}", remark, text, "")))


def times(comparison: Comparison) -> RenderableType:
    """Where each answer's seconds went, beside what was predicted; whoever was left out, with the reason; the verdicts."""
    table = grid(
        *("#>", "model", "machine", "waited>", "load>", "prefill>", "decode>", "whole|answer>", "predicted>"),
        *("tok/s>", "cost>", "cost|predicted>", "task"),
        spare=(("task",), ("cost", "cost predicted"), ("load", "prefill", "decode"), ("waited",)),
    )
    for entry in sorted(comparison.entries):
        row, end = comparison.entries[entry], comparison.ends.get(entry)
        spent = (end or {}).get("spent") or {}
        took = known(spent.get("took_s"), numbers.seconds) if _is_good(end) or spent else _short(end)
        table.add_row(
            str(entry), Text(row["model"], style="bold"), row["worker_name"],
            *(known(spent.get(name), numbers.seconds) for name in ("wait_s", "load_s", "prefill_s", "decode_s")),
            took, known(row["predicted"].get("total_s"), numbers.seconds), known(spent.get("tokens_per_s"), numbers.plain),
            known(spent.get("cost_s"), numbers.plain), known(row["cost_s"], numbers.plain), row["task"],
        )  # fmt: skip
    lines: list[RenderableType] = [table, *(Text(note, style="dim") for note in _notes(comparison))]
    lines += [
        Text(f"left out: {gone['model']} on {gone['worker_name'] or gone['worker']}: {gone['reason']}", style="dim")
        for gone in comparison.removed
    ]
    return Group(*lines, *(Text(verdict_words(verdict, comparison)) for verdict in comparison.judged))


def _notes(comparison: Comparison) -> Iterator[str]:
    """What the table's words mean: each unknown has a reason."""
    if comparison.warning:
        yield f"note: {comparison.warning}"
    spent = [end["spent"] for end in comparison.ends.values() if end.get("spent")]
    if any(of["load_s"] is None for of in spent):
        yield "load unknown: its model server does not tell it"
    if any(of["tokens_per_s"] is None or of["decode_s"] is None for of in spent):
        yield "decode or tok/s unknown: the answer was too short, or its model server does not count"
    if spent:
        yield "cost: seconds, less what the predicted quality is worth; the least is best, only differences count"


def verdict_words(verdict: Json, comparison: Comparison) -> str:
    """``gemma3 judged 1 qwen3 against 3 llama3: own in both orders``, with the sides' names instead of own and peer."""
    first, second = (f"{n} ({comparison.entries[n]['model']})" for n in (verdict["first"], verdict["second"]))
    if verdict["judge"] is None:
        return f"nobody judged {first} against {second}: {verdict['words']}"
    value = verdict["value"]
    said = "no verdict" if value is None else first if value == 1.0 else second if value == 0.0 else "a tie"
    numbered = {"own": str(verdict["first"]), "peer": str(verdict["second"])}
    words = re.sub(r"\b(own|peer)\b", lambda side: numbered[side[0]], verdict["words"])
    kin = ", a relative" if verdict["kin"] else ""
    return f"{verdict['judge']}{kin} on {first} and {second}: {said} ({words})"


def _short(end: Json | None) -> str:
    return numbers.UNKNOWN if end is None else str(end["status"]["state"])


def _is_good(end: Json | None) -> bool:
    return end is not None and end["status"]["state"] == "completed" and end["status"].get("outcome") == "ok"


def _thought(end: Json) -> bool:
    return bool((end.get("answer") or {}).get("thinking"))
