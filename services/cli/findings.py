"""What a healthy Headrace looks like, and what to do about each way of not being one.

Answers "is this part all right?" for ``headrace doctor``, from what was gathered about it. Pure: it looks at nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from services.cli import numbers

Json = dict[str, Any]
Level = Literal["ok", "note", "warning", "problem"]
LAG_EVENTS_MAX = 1000
"""The projector folds tens of thousands of events per second: a thousand behind is a stopped or stuck one, not a busy one."""
DISK_FREE_MIN_BYTES = 1_000_000_000
"""JetStream refuses to store when the disk is full; a gigabyte holds about a million tasks' facts."""
JOIN_HINT = (
    "start a model server: `headrace up` finds it within ten seconds on the usual ports, "
    "or give `headrace up --backend URL`; one on another machine joins what `headrace up --lan` runs"
)


WORKER_HINT = (
    "`headrace up` gives it one within ten seconds; where the router is on another machine, `headrace join CODE`"
)


class Finding(NamedTuple):
    """One line of the report; ``action`` says what to do where something is not all right."""

    part: str
    level: Level
    words: str
    action: str | None = None


def router(url: str, readiness: Json) -> list[Finding]:
    findings = []
    if readiness["ready"]:
        findings.append(
            Finding("router", "ok", f"ready at {url}, position {readiness['position']} of {readiness['last']}")
        )
    else:
        reason = readiness.get("reason") or "it is still reading the log"
        findings.append(Finding("router", "problem", f"not ready: {reason}", "wait; if it stays so, look at its log"))
    if not readiness["dispatcher"]:
        findings.append(
            Finding(
                "router",
                "note",
                "this router serves HTTP; another one dispatches",
                "if no other runs, what waits stays waiting",
            )
        )
    for part, still in (
        ("routes", "the virtual models of the former file are"),
        ("settings", "the former settings are"),
    ):
        if problem := readiness.get(part):
            findings.append(Finding(part, "problem", str(problem), f"correct that; until then {still} in force"))
    return findings


def targets(routes: Json) -> list[Finding]:
    """Of the virtual models: each target that nobody in the fleet is meant by, as the router says."""
    action = "correct routes.toml, or start that machine"
    return [Finding("routes", "problem", str(words), action) for words in routes.get("warnings") or ()]


def nobody_takes_work(body: Json, waiting: int) -> list[Finding]:
    """Where every machine that could is paused: silent ones are a problem of their own."""
    heard = [worker for worker in body["workers"] if worker["state"] not in ("silent", "backend down")]
    if not heard or not all(worker["paused"] for worker in heard):
        return []
    told = "each machine is paused" if len(heard) > 1 else f"{heard[0]['name']} is paused, and no other takes work"
    waits = f"{waiting} task{' waits' if waiting == 1 else 's wait'}: " if waiting else ""
    action = f"`headrace resume {heard[0]['name']}`; `headrace fleet` says until when"
    return [Finding("pauses", "problem" if waiting else "warning", waits + told, action)]


def nats(readiness: Json) -> Finding:
    match readiness["sync"]:
        case "always":
            return Finding("nats", "ok", "sync always: what was acknowledged survives a power cut")
        case None:
            return Finding(
                "nats", "note", "the server does not say when it syncs to disk", "see docs/operations.md, durability"
            )
        case sync:
            words = f"sync {sync}: what was acknowledged survives a crash, but not a power cut"
            return Finding("nats", "note", words, '`[nats] sync = "always"` is safer and a little slower')


def projector(stats_position: int, last: int) -> Finding:
    """By how far the statistics are behind the log."""
    lag = max(last - stats_position, 0)
    if lag <= LAG_EVENTS_MAX:
        return Finding("projector", "ok", f"statistics up to event {stats_position} of {last}")
    words = f"statistics end at event {stats_position}, {numbers.count(lag)} before the log's end"
    return Finding(
        "projector",
        "warning",
        words,
        "is `headrace projector` running? decisions rest on old numbers until it catches up",
    )


def benchmarker(body: Json) -> Finding:
    """What is measured unasked, and what keeps the rest back."""
    if not body["on"]:
        return Finding("benchmarker", "note", "measures nothing unasked ([benchmarker] on = false)")
    now = [debt for debt in body["owed"] if debt["why"] is None]
    waits = [debt for debt in body["owed"] if debt["why"] is not None]
    told = [f"measures {debt['model']} on {debt['worker_name']} ({debt['reason']})" for debt in now]
    if waits:
        first, count = waits[0], body["total"] - len(now)
        told.append(f"{count} to be measured; first {first['model']} on {first['worker_name']}: {first['why']}")
    return Finding("benchmarker", "ok", "; ".join(told) or "nothing is left to measure")


def no_benchmarker(error: str) -> Finding:
    return Finding(
        "benchmarker",
        "warning",
        error.split(";")[0],
        "start `headrace benchmarker`: until then machines are known by what people ask only",
    )


def workers(body: Json) -> list[Finding]:
    if not body["workers"]:
        return [
            Finding(
                "workers",
                "problem",
                "no machine has joined",
                JOIN_HINT,
            )
        ]
    return [_worker(worker) for worker in body["workers"]]


def _worker(worker: Json) -> Finding:
    name, state = f"worker {worker['name']}", worker["state"]
    if state == "silent":
        return Finding(
            name, "problem", "not heard: it gets no work", "is its machine awake, and its `headrace worker` running?"
        )
    if state == "backend down":
        reason = str((worker.get("unknown") or {}).get("wait_s", state))
        action = f"start its model server ({worker['backend']}) again; the worker finds it by itself"
        return Finding(name, "problem", reason, action)
    if not worker["models"]:
        action = "load a model there (`ollama pull`, or start llama-server with one), then look again"
        return Finding(name, "warning", f"{state}, but it holds no model", action)
    holds = f"{state}, {worker['backend']}, {len(worker['models'])} model{'s' if len(worker['models']) > 1 else ''}"
    unknown = worker.get("unknown") or {}
    if unknown:
        told = "; ".join(f"{field} unknown: {reason}" for field, reason in sorted(unknown.items()))
        level: Level = "warning" if state == "stale" else "note"
        return Finding(
            name,
            level,
            f"{holds}; {told}",
            None if state != "stale" else "its load is older than 15 s; is it overloaded?",
        )
    if worker.get("paused"):
        return Finding(name, "note", f"{holds}; paused {worker['paused']}", f"`headrace resume {worker['name']}`")
    return Finding(name, "ok", holds)


def models(body: Json) -> list[Finding]:
    held = body["models"]
    if not held:
        return [
            Finding(
                "models",
                "problem",
                "the fleet holds no model",
                "give a backend one, for example `ollama pull qwen3:8b`",
            )
        ]
    findings = [Finding("models", "ok", f"{len(held)}: " + ", ".join(model["name"] for model in held[:8]))]
    findings += [
        Finding(
            "models",
            "warning",
            f"{model['name']} is not the same file everywhere",
            "pull it again, or rename one in [models]",
        )
        for model in held
        if model["one_digest"] is False
    ]
    return findings


def backends(found: Sequence[tuple[str, str]], kinds_served: Sequence[str]) -> list[Finding]:
    """Local servers on default ports; one whose kind no local worker speaks for is not used yet."""
    return [
        Finding("backends", "ok", f"{kind} at {url}")
        if kind in kinds_served
        else Finding("backends", "note", f"{kind} at {url} has no worker", WORKER_HINT)
        for kind, url in found
    ]


def disk(folder: str, free_bytes: int, *, named: bool = True) -> Finding:
    """``named``: somebody said that this is the folder; else it is where a router keeps its data unless told otherwise."""
    if not named:
        folder += " (the usual place; if the router was started with --data, say the same here)"
    if free_bytes >= DISK_FREE_MIN_BYTES:
        return Finding("data", "ok", f"{folder}, {numbers.size(free_bytes)} free")
    return Finding(
        "data", "problem", f"{folder} has only {numbers.size(free_bytes)} free", "free some, or choose another --data"
    )


def wheels(missing: Sequence[tuple[str, str]]) -> list[Finding]:
    """Optional parts that are not installed, with the command that installs each."""
    return [
        Finding("demo", "note", f"{package} is not installed (only `up --demo` needs it)", command)
        for package, command in missing
    ]


def failed(findings: Sequence[Finding]) -> bool:
    return any(finding.level == "problem" for finding in findings)
