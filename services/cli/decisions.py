"""One decision for a terminal: what could have answered, what each would have cost, what was removed and why.

Answers "why this model on this machine?" from the router's JSON (docs/http.md), on one screen that needs no other page to be
understood. It decides nothing and computes no cost: words and numbers are the router's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rich.console import Group, RenderableType

from services.cli import numbers
from services.cli.evidence import evidence, is_measured
from services.cli.numbers import known
from services.cli.screen import HEIGHT, Rows, Screen, Section
from services.cli.tables import grid

Json = dict[str, Any]
Names = dict[str, str]
CANDIDATES = 4
REMOVALS = 2
"""How many are shown where not all were asked for: the rest would push the answer off the screen."""
HARDLY_S = 0.005
"""The story tells hundredths of a second: a shorter wait is 0.00 s there."""
DETAILS = ("model", "worker", "attempt", "failure", "reason", "outcome", "detail")
MORE = "`--all` shows everything"


def preview(body: Json, *, show_all: bool = False) -> RenderableType:
    domain, choice = body["domain"], body["choice"]
    nobody = "nobody could answer this now" + (
        "." if body["removed"] else ": no machine with a model has joined; `headrace doctor` says what to do."
    )
    chosen = nobody if choice is None else _chosen(body, {}, again=False)
    beside = _beside(body.get("versus"), {})
    sections = [
        Section([f"a prompt of the domain {domain['label']} ({_how_sure(domain)})."], "Asked:"),
        Section([chosen], "Chosen:", style="bold", least=2),
        *_compared(body, {}, show_all),
        Section(_prospect(body.get("prospect")), "Now:", least=2),
        *beside,
        *(_known(body, {}, show_all) if show_all or not beside else ()),
    ]
    return _screen(sections, show_all)


def _prospect(found: Json | None) -> list[str]:
    """What would happen to it at this moment."""
    if found is None:
        return []
    if found["reason"] is None:
        return [f"it would start at once, with {found['model']} on {_name(found, {})}."]
    starts_s = found["starts_s"]
    when = "nobody knows how long" if starts_s is None else f"about {numbers.seconds(starts_s)}"
    place = f"place {found['place']} of {found['waiting']}"
    where = f" for {_name(found, {})}" if found.get("worker") else ""
    why = found["reason"].partition(":")[2].strip() or found["reason"]
    told = [f"it would wait{where} ({when}; {place}): {why}."]
    ahead = found["place"] - 1
    if ahead:
        told.append(f"the waits above are the machines' own, without the {ahead} task{'s' * (ahead > 1)} ahead of it.")
    return told


def explanation(
    body: Json, *, names: Names | None = None, with_events: bool = False, show_all: bool = False
) -> RenderableType:
    names = names or {}
    status, story = body["status"], body.get("story") or []
    decision, again = _last_decision(body)
    nothing = "nothing yet." if status["state"] == "waiting" else "nothing, before it ended."
    chosen = nothing if decision is None else _chosen(decision, names, again)
    beside, verified = (
        _beside(body.get("versus"), names, again),
        [each["words"] for each in body.get("verification") or ()],
    )
    is_whole = show_all or not beside  # a comparison needs the screen for itself
    sections = [
        Section([f"{status['task']}, {status['state']}{_times(status)}"], "Task"),
        Section(verified, "Verified:", least=HEIGHT),
        Section(story[:1], "Asked:", least=2),
        Section([chosen], "Chosen:", style="bold", least=2),
        *_compared(decision or {}, names, show_all),
        Section(story[1:] if is_whole else [], "Then:", least=6),
        *beside,
        *(_known(decision or {}, names, show_all) if is_whole else ()),
    ]
    parts: list[RenderableType] = [_screen(sections, show_all)]
    if with_events:
        parts.append(timeline(body["events"], names))
    return Group(*parts)


def timeline(events: list[Json], names: Names | None = None) -> RenderableType:
    table = grid("at (UTC)", "event", "by", "says", spare=(("says",), ("by",)))
    for event in events:
        told = (f"{key} {_named(str(event[key]), names or {})}" for key in DETAILS if event.get(key) not in (None, ""))
        by = str(event.get("by", ""))
        table.add_row(numbers.clock(event["at"]), event["type"], (names or {}).get(by, by), ", ".join(told))
    return table


def _screen(sections: list[Section], show_all: bool) -> Screen:
    return Screen(sections, height=None if show_all else HEIGHT, more=MORE)


def _compared(decision: Json, names: Names, show_all: bool) -> list[Section]:
    """The candidates side by side, and how to read them."""
    rows = decision.get("candidates") or []
    if not rows:
        return []
    shown = rows if show_all else rows[:CANDIDATES]
    legend = _legend(shown, _slider(decision), len(rows) - len(shown) + _omitted(decision))
    return [Section([], table=candidates(shown, names), least=5), Section([legend], style="dim", least=2)]


def _known(decision: Json, names: Names, show_all: bool) -> list[Section]:
    """How well the chosen one is known, and who was left out."""
    rows, removed = decision.get("candidates") or [], decision.get("removed") or []
    sections: list[Section] = []
    if rows:
        for row in rows if show_all else rows[:1]:
            title = f"How well that is known ({row['model']} on {_name(row, names)}):"
            sections.append(Section([title], least=1))
            sections.append(Section([], table=evidence(row, everything=show_all), least=3))
    if removed:
        told = [f"{row['model']} on {_name(row, names)} ({_named(row['reason'], names)})" for row in removed]
        more = [] if show_all or len(told) <= REMOVALS + 1 else [f"and {len(told) - REMOVALS} more"]
        sections.append(Section(told[:REMOVALS] + more if more else told, "Left out:"))
    return sections


def candidates(rows: list[Json], names: Names | None = None) -> Rows:
    """What each would take, part by part, and what that comes to. Columns that are 0 everywhere are not shown."""
    columns: list[tuple[str, Callable[[Json], str]]] = [
        ("model", lambda row: row["model"]),
        ("machine", lambda row: _name(row, names)),
        ("seconds>", lambda row: known(row["predicted"]["total_s"], numbers.seconds)),
        ("= wait>", lambda row: known(row["predicted"]["wait_s"], numbers.seconds)),
        ("+ load>", lambda row: known(row["predicted"]["load_s"], numbers.seconds)),
        ("+ prompt>", lambda row: known(row["predicted"]["prefill_s"], numbers.seconds)),
        ("+ answer>", lambda row: _borrowed(row["decode"]) + known(row["predicted"]["decode_s"], numbers.seconds)),
    ]
    if any(row["predicted"].get("sharing_s") for row in rows):
        columns.append(("+ sharing>", lambda row: known(row["predicted"]["sharing_s"], numbers.seconds)))
    if any(row.get("others_s") for row in rows):
        columns.append(("tasks behind>", lambda row: known(row["others_s"], numbers.seconds)))
    columns.append(("quality>", lambda row: _borrowed(row["quality"]) + _points(row["quality"])))
    columns.append(("cost>", lambda row: f"{row['cost_s']:.1f}"))
    if len(rows) > 1:
        columns.append(("against →>", lambda row: _more(row["cost_s"] - rows[0]["cost_s"])))
    if any(row.get("votes") for row in rows):
        columns.append(("votes>", lambda row: f"{sum(row['votes'].values()):.2f}"))
    return Rows(
        tuple(name for name, _ in columns),
        [tuple(write(row) for _, write in columns) for row in rows],
        tuple("→" if index == 0 else "" for index in range(len(rows))),
        spare=(("= wait", "+ load", "+ prompt", "+ answer", "+ sharing", "tasks behind"), ("votes",), ("quality",)),
    )


def _more(by: float) -> str:
    return "" if by == 0.0 else f"{numbers.seconds(abs(by))} {'more' if by > 0 else 'less'}"


def _legend(rows: list[Json], slider: float, more: int) -> str:
    behind = " + seconds taken from the tasks behind" if any(row.get("others_s") for row in rows) else ""
    rule = "the most votes win" if any(row.get("votes") for row in rows) else "the least cost wins"
    words = f"cost = seconds{behind} - {slider:g} s for each point of quality (0 to 100); {rule}."
    if any(row["cost_s"] < 0 for row in rows):
        words += " Below 0 the quality is worth more than the seconds; only differences count."
    if any(_borrowed(row[name]) for row in rows for name in ("decode", "quality")):
        words += " ~ borrowed or guessed, not measured for just this."
    return words + (f" {more} more could have answered." if more else "")


def _beside(versus: Json | None, names: Names, again: bool = False) -> list[Section]:
    """The other decision: in words, and every pair's parts before and after. ``again``: the choice shown is the release's, and
    what is compared is the decision of its arrival."""
    if versus is None:
        return []
    fields = {
        "wait_s": "wait", "load_s": "load", "prefill_s": "prompt", "decode_s": "answer", "sharing_s": "sharing",
        "others_s": "tasks behind", "quality_s": "quality", "cost_s": "cost", "votes": "votes",
    }  # fmt: skip
    changed = [key for key in fields if any(_moved(pair, key) for pair in versus["pairs"])]
    shown = [key for key in fields if key in changed or key == "cost_s"]
    rows = [
        (pair["model"], _name(pair, names), *(_before_after(pair, key) for key in shown)) for pair in versus["pairs"]
    ]
    which = ", as decided on arrival" if again else ""
    sections = [Section(versus["words"], f"Compared with {versus['label']}{which}:", least=6)]
    if rows:
        table = Rows(
            ("model", "machine", *(f"{fields[key]}{' s' * (key != 'votes')}>" for key in shown)), rows[:CANDIDATES]
        )
        sections.append(Section([], table=table, least=2))
    return sections


def _moved(pair: Json, key: str) -> bool:
    before, after = pair["before"], pair["after"]
    sides = [side.get(key) for side in (before, after) if side is not None]
    if key == "votes":
        return any(side is not None for side in sides)
    return len(sides) == 2 and abs(sides[0] - sides[1]) >= 0.005


def _before_after(pair: Json, key: str) -> str:
    """Who is no candidate on one side has no parts there: that is said once, beside the cost."""
    both = [pair["before"], pair["after"]]
    sides = ["out" if side is None else _figure(side.get(key)) for side in both]
    if None in both and key != "cost_s":
        return next(side for side in sides if side != "out")
    return sides[0] if sides[0] == sides[1] else " → ".join(sides)


def _figure(value: float | None) -> str:
    """Nothing where nobody voted."""
    return "-" if value is None else f"{value:.2f}"


def _last_decision(body: Json) -> tuple[Json | None, bool]:
    """What decided in the end, best first: the release that recorded every pair, else the first idea; and whether it was the
    former."""
    for event in reversed(body.get("events") or ()):
        if event.get("type") == "task.released" and event.get("candidates"):
            mine = (event["model"], event.get("expected_worker"))
            rows = sorted(event["candidates"], key=lambda row: (row["model"], row["worker"]) != mine)
            first = body["decision"] or {}
            choice = {"model": mine[0], "worker": mine[1], "reason": event.get("reason") or ""}
            return {**first, "candidates": rows, "choice": choice, "omitted": 0}, True
    return body["decision"], False


def _chosen(decision: Json, names: Names, again: bool) -> str:
    choice = decision.get("choice")
    if choice is None:
        return "nobody: no machine that is known can answer this."
    when = " (when it left the queue)" if again else ""
    why = _named(choice.get("reason") or "no reason was recorded", names)
    return f"{choice['model']} on {_name(choice, names)}{when}: {why}."


def _named(text: str, names: Names) -> str:
    """With the machines' names for their ids."""
    return re.sub(r"[A-Za-z0-9_-]+", lambda found: names.get(found[0], found[0]), text)


def _name(row: Json, names: Names | None) -> str:
    worker = row.get("worker")
    return str(row.get("worker_name") or (names or {}).get(str(worker)) or worker or "any machine")


def _slider(decision: Json) -> float:
    return float((decision.get("policy") or {}).get("weights", {}).get("slider", 1.0))


def _omitted(decision: Json) -> int:
    return int(decision.get("omitted") or 0)


def _borrowed(measure: Json) -> str:
    return "" if is_measured(measure) else "~"


def _points(measure: Json) -> str:
    return known(measure["value"], lambda value: f"{100 * value:.0f}")


def _how_sure(domain: Json) -> str:
    sure = domain.get("confidence")
    told = {"rules": "by its words", "client": "as the client said"}.get(domain["method"], f"by {domain['method']}")
    return told if sure is None else f"{told}, confidence {sure:.2f}"


def _times(status: Json) -> str:
    times = {**(status.get("times") or {}), "waited_s": status.get("waited_s")}
    told = [
        f"{words} {numbers.seconds(times[key])}"
        for key, words in (("waited_s", "waited"), ("first_token_s", "first word"), ("total_s", "answer"))
        if times.get(key) is not None and not (key == "waited_s" and times[key] < HARDLY_S)
    ]
    return f" ({', '.join(told)})" if told else ""
