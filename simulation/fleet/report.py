"""From the numbers of many seeds to tables that people read, in Markdown. Pure.

Answers "is it as good as promised, and how sure is that?". Ratios are taken seed by seed and then averaged; what stands behind ±
is the standard error of that mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from simulation.fleet.outcome import Spread, spread

Numbers = dict[str, float]
Results = dict[tuple[str, str], list[Numbers]]
"""(case, fleet) -> the numbers of each seed."""
FLEETS = ("F2", "F3", "F6")


@dataclass(frozen=True)
class Claim:
    """One line of the table of targets: a number for each seed, what it must come to, and whether it does."""

    text: str
    case: str
    fleets: tuple[str, ...]
    value: Callable[[Numbers], float]
    target: str
    holds: Callable[[Spread], bool]
    shows_median: bool = False


def _ratio(over: str, under: str) -> Callable[[Numbers], float]:
    return lambda numbers: numbers[over] / numbers[under]


def _mean_claim(text: str, case: str) -> Claim:
    return Claim(
        f"mean latency / oracle, {text}", case, FLEETS, _ratio("mean ours", "mean oracle"),
        "1.00 to 1.20", lambda s: 1.0 - 2 * s.error <= s.mean <= 1.20,
    )  # fmt: skip


def _price(text: str, case: str) -> Claim:
    """No target: what it would be beside somebody who may starve whom he likes."""
    return Claim(
        f"the same beside the oracle that keeps no promises, {text}", case, FLEETS,
        _ratio("mean ours", "mean oracle, no promises"), "shown", lambda s: True,
    )  # fmt: skip


def _open_claim(text: str, case: str, most_s: float) -> Claim:
    return Claim(
        f"open tasks, mean - quality, late less on arrival, {text}", case, FLEETS,
        lambda numbers: numbers["late"] - numbers["arrival"],
        f"< {most_s:g} s" if most_s <= 0 else f"<= {most_s:g} s",
        (lambda s: s.mean < most_s) if most_s <= 0 else (lambda s: s.mean <= most_s),
    )  # fmt: skip


def _burst_claim(rival: str, least: float, case: str, text: str) -> Claim:
    return Claim(
        f"{text} makespan, {rival} / ours", case, FLEETS, _ratio(rival, "ours"), f">= {least:g}",
        lambda s: s.mean >= least,
    )  # fmt: skip


CLAIMS = (
    Claim("burst makespan / oracle, median", "burst", ("F2",), _ratio("ours", "oracle"), "<= 1.15",
          lambda s: s.median <= 1.15, shows_median=True),
    Claim("burst makespan / oracle", "burst", FLEETS, _ratio("ours", "oracle"), "not below 1 on the mean",
          lambda s: s.mean >= 1.0 - 2 * s.error),
    Claim("burst makespan / proven bound", "burst", FLEETS, _ratio("ours", "bound"), ">= 1", lambda s: s.mean >= 1.0),
    *(_burst_claim("legacy_as_published", 5.0, case, text) for case, text in (("burst", "burst"), ("chat_burst", "chat burst"))),
    *(_burst_claim(rival, 2.0, "burst", "burst") for rival in ("round_robin", "least_in_flight")),
    *(_burst_claim(rival, 2.0, "chat_burst", "chat burst") for rival in ("round_robin", "least_in_flight")),
    _mean_claim("load 0.4", "light"),
    _mean_claim("load 0.75", "heavy"),
    _mean_claim("bursty 0.4", "bursty"),
    _price("load 0.75", "heavy"),
    _price("bursty 0.4", "bursty"),
    Claim("p95, least_in_flight / ours, load 0.75", "heavy", FLEETS, _ratio("p95 least_in_flight", "p95 ours"), ">= 2",
          lambda s: s.mean >= 2.0),
    Claim("p99, ours / pull, load 0.75", "heavy", FLEETS, _ratio("p99 ours", "p99 pull"), "<= 1", lambda s: s.mean <= 1.0),
    _open_claim("load 0.4", "open_light", 0.0),
    _open_claim("load 0.75", "open_heavy", 0.0),
    _open_claim("bursty", "open_bursty", 0.0),
    _open_claim("burst", "open_burst", 0.5),
)  # fmt: skip


def targets(results: Results) -> list[str]:
    """The table of what was promised. A claim whose case was not run is left out."""
    lines = ["| claim | target | F2 | F3 | F6 |", "|---|---|---|---|---|"]
    for claim in CLAIMS:
        cells = [_cell(claim, results.get((claim.case, fleet), []), fleet) for fleet in FLEETS]
        if any(cells):
            lines.append(f"| {claim.text} | {claim.target} | {' | '.join(cells)} |")
    return lines


def _cell(claim: Claim, seeds: Sequence[Numbers], fleet: str) -> str:
    if fleet not in claim.fleets or not seeds:
        return ""
    found = spread([claim.value(numbers) for numbers in seeds])
    shown = f"{found.median:.2f}" if claim.shows_median else str(found)
    return shown if claim.holds(found) else f"**{shown}: missed**"


def missed(results: Results) -> int:
    return sum("missed" in line for line in targets(results))


def by_policy(results: Results, case: str, measure: str = "") -> list[str]:
    """Every policy in one case: seconds, and in brackets the mean of its ratios to the oracle."""
    prefix = f"{measure} " if measure else ""
    fleets = [fleet for fleet in FLEETS if results.get((case, fleet))]
    if not fleets:
        return []
    names = [name for name in results[case, fleets[0]][0] if name.startswith(prefix)]
    lines = [f"| policy | {' | '.join(fleets)} |", "|---" * (len(fleets) + 1) + "|"]
    for name in names:
        cells = []
        for fleet in fleets:
            seeds = results[case, fleet]
            seconds = spread([numbers[name] for numbers in seeds]).mean
            ratio = spread([numbers[name] / numbers[f"{prefix}oracle"] for numbers in seeds])
            cells.append(f"{_seconds(seconds)} ({ratio})")
        lines.append(f"| {name.removeprefix(prefix)} | {' | '.join(cells)} |")
    return lines


def plain(results: Results, case: str) -> list[str]:
    """The means of all numbers of a case, by fleet."""
    fleets = [fleet for fleet in FLEETS if results.get((case, fleet))]
    if not fleets:
        return []
    lines = [f"| | {' | '.join(fleets)} |", "|---" * (len(fleets) + 1) + "|"]
    for name in results[case, fleets[0]][0]:
        worst = max if name.endswith(("most", "most s")) else None
        cells = []
        for fleet in fleets:
            values = [numbers[name] for numbers in results[case, fleet]]
            cells.append(f"{worst(values):.1f}" if worst else str(spread(values)))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value < 1000 else f"{value:.0f}"


SECTIONS = (
    ("Makespan of a cold burst of 20 mixed tasks, s (ratio to the oracle)", "burst", ""),
    ("Makespan of a cold burst of 20 chat tasks, s (ratio to the oracle)", "chat_burst", ""),
    ("Mean latency at load 0.4, s (ratio to the oracle)", "light", "mean"),
    ("Mean latency at load 0.75, s (ratio to the oracle)", "heavy", "mean"),
    ("p95 at load 0.75, s (ratio to the oracle)", "heavy", "p95"),
    ("Mean latency of bursty traffic at load 0.4, s (ratio to the oracle)", "bursty", "mean"),
    ("Mean latency while the fast machine sleeps half an hour, s (ratio to the oracle)", "sleep", "mean"),
    ("Mean latency when the fast machine is throttled to a quarter half-way, s (ratio to the oracle)", "drift", "mean"),
)
PLAIN = (
    ("First 100 tasks when only the laptop has samples, load 0.2", "joining"),
    ("Promises under random limits (worst over seeds where it says most)", "promises"),
)


def document(results: Results, seeds: int) -> str:
    """All tables there are results for."""
    lines = [
        f"Means over {seeds} seeds (fewer where no target rests on them), ± the standard error of the mean.",
        "",
        "### Targets",
        "",
        *targets(results),
    ]
    for title, case, measure in SECTIONS:
        if table := by_policy(results, case, measure):
            lines += ["", f"### {title}", "", *table]
    for title, case in PLAIN:
        if table := plain(results, case):
            lines += ["", f"### {title}", "", *table]
    return "\n".join(lines) + "\n"
