"""From the numbers of many seeds to tables that people read, in Markdown. Pure.

Answers "does the loop learn as fast and cost as little as promised, and how sure is that?". What stands behind ± is the standard
error of the mean over seeds; a ratio is taken seed by seed, unless its line says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from simulation.fleet.outcome import spread

Numbers = dict[str, float]
Results = dict[str, list[Numbers]]
"""case -> the numbers of each seed."""


@dataclass(frozen=True)
class Claim:
    """One line of the table of targets. ``at_most`` None is shown without a target; ``worst``: of all seeds, not their mean."""

    text: str
    case: str
    value: str
    at_most: float | None
    unit: str = ""
    worst: bool = False
    under: str | None = None

    def of(self, seeds: Sequence[Numbers]) -> tuple[float, str]:
        """(what is held against the target, what is shown)."""
        values = [n[self.value] / n[self.under] if self.under else n[self.value] for n in seeds]
        if self.worst:
            return max(values), f"{_number(max(values))}{self.unit}"
        found = spread(values)
        return found.mean, f"{_number(found.mean)} ± {_number(found.error)}{self.unit}"


def targets(results: Results, claims: Sequence[Claim]) -> list[str]:
    """A claim whose case was not run is left out."""
    lines = ["| claim | target | result |", "|---|---|---|"]
    for claim in claims:
        if seeds := results.get(claim.case):
            value, shown = claim.of(seeds)
            target = "shown" if claim.at_most is None else f"<= {claim.at_most:g}{claim.unit}"
            missed = claim.at_most is not None and not value <= claim.at_most
            lines.append(f"| {claim.text} | {target} | {f'**{shown}: missed**' if missed else shown} |")
    return lines


def missed(results: Results, claims: Sequence[Claim]) -> int:
    return sum("missed" in line for line in targets(results, claims))


def table(
    results: Results, case: str, columns: Sequence[tuple[str, str]], rows: Sequence[tuple[str, str]]
) -> list[str]:
    """Means over seeds of ``row column``; each of rows and columns is (its name among the numbers, what it is called)."""
    seeds = results.get(case)
    if not seeds:
        return []
    lines = [f"| | {' | '.join(title for _, title in columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row, title in rows:
        cells = [_cell([n[f"{row} {column}"] for n in seeds if f"{row} {column}" in n]) for column, _ in columns]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return lines


def _cell(values: Sequence[float]) -> str:
    if not values:
        return ""
    found = spread(values)
    return f"{_number(found.mean)} ± {_number(found.error)}"


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
