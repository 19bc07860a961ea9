"""How well a prediction's numbers are known: how many samples, of what, how old.

Answers "why should I believe that?" for one candidate, from the router's JSON. A number that nobody measured is called a guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from schemas.prediction import factor
from services.cli import numbers
from services.cli.numbers import known
from services.cli.screen import Rows

Json = dict[str, Any]
LEVELS = {
    "cell": "this model, domain and machine",
    "model_domain": "this model and domain, any machine",
    "model_worker": "this model on this machine, any domain",
    "worker": "other models on this machine, scaled by size",
    "model": "this model on other machines",
    "family": "other models of its family",
}
UNKNOWN = "unknown, counted as the worst"


def is_measured(measure: Json) -> bool:
    """Of this very model, topic and machine."""
    return bool(measure["level"] == "cell")


def evidence(row: Json, *, everything: bool = False) -> Rows:
    """One row a number, the speeds first; with ``everything`` also what seldom decides."""
    lines: list[tuple[str, ...]] = [
        ("writes", _rate(row, "decode"), _source(row["decode"])),
        ("reads the prompt", _rate(row, "prefill"), _source(row["prefill"])),
    ]
    if row.get("output_tokens"):
        length = known(row["output_tokens"]["value"], lambda value: f"{value:.0f} tokens")
        lines.append(("answer's length", length, _source(row["output_tokens"])))
    if row.get("resident") is not True:
        label = "loads the model" if row.get("resident") is False else "load (perhaps)"
        lines.append((label, _said(row["load"], numbers.seconds), _source(row["load"])))
    quality = known(row["quality"]["value"], lambda value: f"{100 * value:.0f} of 100")
    lines.append(("quality", quality, _source(row["quality"])))
    others = row.get("others_use")
    if others != 0.0:
        lines.append(("used by others", known(others, numbers.share), _slower(row)))
    if everything:
        lines += _seldom(row)
    return Rows(("", ">", ""), lines)


def _slower(row: Json) -> str:
    left = f"{numbers.share(ours(row))} of the speed is left"
    return f"{UNKNOWN}: {left}" if row.get("others_use") is None else left


def _seldom(row: Json) -> list[tuple[str, ...]]:
    """What further streams and others cost there, and how sure the speed is."""
    lines: list[tuple[str, ...]] = []
    if row.get("slowdown"):
        slower = known(row["slowdown"]["value"], lambda value: f"+{numbers.share(value)}")
        lines.append(("a further stream", slower, f"{_source(row['slowdown'])}; on the time of each"))
    if row.get("others_weight"):
        lines.append(("weight of others", _said(row["others_weight"], numbers.plain), _source(row["others_weight"])))
    if row.get("uncertainty") is not None:
        lines.append(("the speed is sure", f"to ×{math.exp(row['uncertainty']):.1f}", "shown only: it changes no cost"))
    return lines


def _rate(row: Json, name: str) -> str:
    """What is left of it now; it is kept as of a machine without other users."""
    value, share = row[name]["value"], ours(row)
    if value is None or share >= 0.995:
        return _said(row[name], numbers.rate)
    return f"{numbers.rate(value * share)} now, {numbers.plain(value)} without other users"


def ours(row: Json) -> float:
    """The share of the machine's speed that others leave, as the prediction had it."""
    weight, known_share = ((row.get(name) or {}).get("value") for name in ("others_weight", "use_known"))
    return factor(row.get("others_use"), 1.0 if weight is None else weight, 1.0 if known_share is None else known_share)


def _said(measure: Json, write: Callable[[float], str]) -> str:
    return known(measure["value"], write)


def _source(measure: Json) -> str:
    """``31 samples: this model, domain and machine; newest 40 s ago``."""
    if measure["level"] == "prior" or not measure["n"]:
        return "a guess: nothing like it was measured"
    age = "" if measure.get("age_s") is None else f"; newest {numbers.ago_roughly(measure['age_s'])}"
    return f"{measure['n']} sample{'' if measure['n'] == 1 else 's'}: {LEVELS[measure['level']]}{age}"
