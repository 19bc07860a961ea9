"""What one cell's numbers are made of, level by level, so that the sum can be checked with a pocket calculator.

Answers "why 42 tokens/s, and why should I believe it?" from ``GET /stats/explain`` (docs/http.md). It shows and never computes.
"""

from __future__ import annotations

from typing import Any

from rich.console import RenderableType

from services.cli import numbers
from services.cli.screen import Rows, Screen, Section
from services.cli.stats_table import NOBODY, Which, restarted

Json = dict[str, Any]
TITLES = {
    "decode": "Speed of writing",
    "prefill": "Speed of reading the prompt",
    "quality": "Quality",
    "output_tokens": "Length of an answer",
    "load": "Loading the model",
    "slowdown": "What each further stream adds to a token's time",
    "others_weight": "How much of others' use comes off the speed",
    "use_known": "How much of the speed was measured knowing what others used",
}
SHOWN: dict[Which, tuple[str, ...]] = {
    "both": tuple(TITLES),
    "speed": ("decode", "prefill", "load", "output_tokens", "slowdown", "others_weight", "use_known"),
    "quality": ("quality",),
}
LEVELS = {
    "fleet": "all models and machines",
    "family": "its family on this machine",
    "model": "this model, all machines",
    "worker": "this machine, all models",
    "model_worker": "this model on this machine",
    "cell": "just this cell",
}
REST = {
    "fleet": "the other models",
    "domain": "other models in this domain",
    "family": "the rest of its family",
    "model": "its other domains",
    "model_domain": "this domain elsewhere",
    "cell": "just this cell",
}
LENGTHS = REST | {"model_domain": "this model in this domain"}
"""Where a level counts only what the finer ones do not."""
SOURCES = {
    "judge": "by a judge model",
    "check": "by a check",
    "thumb": "by a person's thumb",
    "signal": "by a sign such as an answer cut off",
    "void": "that could not be read and count nothing",
}
HEAD = ("", "its own>", "weight>", "worth>", "gives>", "n>", "newest>")
SPARE = (("newest",), ("n",))


def explained(body: Json, which: Which = "both") -> RenderableType:
    sections = [Section(_head(body), title=_name(body["row"]))]
    guesses: list[str] = []
    for name in SHOWN[which]:
        field = body["fields"].get(name)
        if field is None:
            continue
        if all(level["value"] is None for level in field["levels"]):
            guesses.append(f"{TITLES[name]}: {_written(field['measure']['value'], field['unit'])}.")
            continue
        sections += [Section([""]), Section([_counted(name, body)], title=f"{TITLES[name]}:")]
        sections.append(Section([], table=_levels(field)))
        sections += [Section([line], title="·", style="dim") for line in _notes(name, body)]
    if guesses:
        sections += [Section([""]), Section(guesses, title="Guesses, because nothing like it was measured:")]
    if gone := body["unknown"]:
        sections.append(Section([f"No speeds: {next(iter(gone.values()))}."], style="dim"))
    sections += [Section([""]), *(Section([line], style="dim") for line in _rule(which))]
    return Screen(sections, height=None)


def _name(row: Json) -> str:
    return f"{row['model']} · {row['domain']} · {row.get('worker_name') or row['worker'] or NOBODY}:"


def _head(body: Json) -> list[str]:
    row = body["row"]
    if not (row["ok_n"] or row["fail_n"] or row["fields"]["quality"]["n"]):
        return ["nothing was measured of just this yet; its numbers come from its parents"]
    failed = f" and {row['fail_n']} that were empty or failed" if row["fail_n"] else ""
    judged = row["fields"]["quality"]["n"]
    age = "" if row["age_s"] is None else f", the newest {numbers.ago_roughly(row['age_s'])}"
    head = f"{row['ok_n']} answer{'' if row['ok_n'] == 1 else 's'}{failed}, {judged} judged{age}"
    return [head, restarted(row)] if row["restarted"] else [head]


def _counted(name: str, body: Json) -> str:
    """The number that the planner uses."""
    field = body["fields"][name]
    told = _written(field["measure"]["value"], field["unit"])
    if name == "decode":
        off = numbers.share(body["confidence"]["spread"])
        return f"the planner counts with {told} of one stream on the free machine, give or take {off}"
    if name == "quality" and (spread := body["row"]["expected"]["quality"].get("spread")) is not None:
        return f"the planner counts with {told}, give or take {spread:.2f}"
    guess = " (a guess)" if field["measure"]["level"] == "prior" else ""
    return f"the planner counts with {told}{guess}"


def _levels(field: Json) -> Rows:
    words = LEVELS if field["mean"] == "geometric" or len(field["levels"]) == 1 else REST
    if field["unit"] == "tok":
        words = LENGTHS
    guess = ("the guess to begin with", "", "", "", exact(field["prior"]), "", "")
    rows: list[tuple[str, ...]] = [guess, *(_level(level, words) for level in field["levels"])]
    return Rows(HEAD, rows, spare=SPARE)


def _level(level: Json, words: dict[str, str]) -> tuple[str, ...]:
    return (
        words.get(level["level"]) or str(level["level"]),
        "nothing" if level["value"] is None else exact(level["value"]),
        f"{level['weight']:.2f}",
        f"{level['parent_worth']:g}",
        exact(level["result"]),
        numbers.count(level["n"]),
        "" if level["age_s"] is None or level["value"] is None else numbers.ago_roughly(level["age_s"]),
    )


def _notes(name: str, body: Json) -> list[str]:
    field = body["fields"][name]
    lines = [_by_hand(field)]
    if field["hundredths"]:
        lines.append("It is used rounded to hundredths.")
    own = body["row"]["fields"].get(name, {})
    if own.get("p50") is not None:
        seen = "Seen here" if name == "quality" else "Seen here as it ran"
        lines.append(f"{seen}: half at most {exact(own['p50'])}, 95 % at most {exact(own['p95'])}.")
    if ran := body["as_ran"].get(name):
        lines.append(
            f"Just this cell: {exact(ran['observed'])} as it ran × {exact(ran['streams'])} for streams side by side"
            f" × {exact(ran['others'])} for others' use = {exact(ran['alone'])}."
        )
    if name == "quality":
        lines += _opinions(body["opinions"])
    if name == "decode":
        lines.append(_confidence(body["confidence"]))
    return [line for line in lines if line]


def _by_hand(field: Json) -> str:
    """The last line with samples, as one would type it."""
    above = field["prior"]
    found: tuple[Json, float] | None = None
    for level in field["levels"]:
        if level["value"] is not None:
            found = (level, above)
        above = level["result"]
    if found is None:
        return ""
    level, above = found
    log, begin, end = ("ln ", "e^(", ")") if field["mean"] == "geometric" else ("", "", "")
    total = f"{level['weight']:.2f} · {log}{exact(level['value'])} + {level['parent_worth']:g} · {log}{exact(above)}"
    whole = f"{level['weight']:.2f} + {level['parent_worth']:g}"
    return f"By hand: {begin}({total}) / ({whole}){end} = {exact(level['result'])}"


def _confidence(sure: Json) -> str:
    off = numbers.share(sure["spread"])
    if sure["machine_weight"] is None:
        return f"Give or take {off}: nothing was measured on this machine."
    machine, pair = (f"{sure[name]:.2f}" for name in ("machine_weight", "pair_weight"))
    return f"Give or take {off}: e^√(0.25 / ({machine} + 1) + 0.04 / ({pair} + 1)) − 1, of the machine's and the pair's weight."


def _opinions(told: Json) -> list[str]:
    """Whose word the quality of this model in this domain is."""
    counted = [
        f"{told['sources'].get(name, 0)} {words}" for name, words in SOURCES.items() if told["sources"].get(name)
    ]
    lines = [f"Judged in this domain, on all machines: {', '.join(counted)}."] if counted else []
    alone, pairs = told["by_itself"], told["pairs"]
    if pairs:
        rivals = "; ".join(
            f"{rival['model']} in {_times(rival['n'])}, won {numbers.share(rival['won'])}" for rival in pairs["rivals"]
        )
        lines.append(f"Held against {rivals} (a tie is half).")
        lines.append(
            f"These pairs make a strength of {pairs['strength']:+.2f} (Bradley-Terry, 0 is the mean of the domain's models),"
            f" which counts as {exact(pairs['value'])} with a weight of {pairs['weight']:.2f}."
        )
        if alone["value"] is not None:
            lines.append(
                f"By themselves its answers were found {exact(alone['value'])} good, weight {alone['weight']:.2f}."
            )
    return lines


def _times(n: int) -> str:
    return f"{n} pair{'' if n == 1 else 's'}"


def _rule(which: Which) -> list[str]:
    of = "" if which == "quality" else ", of logarithms for speeds"
    lines = [
        f"Each line gives (weight × its own + worth × the line above) / (weight + worth){of}.",
        "The weight is that of its n samples: half for 20 younger ones, half for 14 days.",
    ]
    if which != "speed":
        lines.append("Of quality, each other domain or model weighs at most 1, however often it was judged.")
    if which != "quality":
        lines.append("Other models' speeds are taken to this model's size: twice as large, half as fast.")
    return lines


def _written(value: float, unit: str) -> str:
    match unit:
        case "tok/s":
            return f"{exact(value)} tokens/s"
        case "s":
            return f"{exact(value)} s"
        case "tok":
            return f"{exact(value)} tokens"
    return exact(value)


def exact(value: float) -> str:
    """Four digits, enough to follow a sum; never an exponent."""
    if value == 0:
        return "0"
    size = abs(value)
    digits = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3 if size >= 1 else 4
    return f"{value:.{digits}f}"
