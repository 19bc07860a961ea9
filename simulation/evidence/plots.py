"""The evidence loop as pictures: SVG that is the same, byte for byte, for the same numbers.

Answers "how fast does it learn, and what does a day of it look like?". matplotlib is set up in ``simulation.fleet.plots``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from matplotlib import pyplot
from matplotlib.figure import Figure

import simulation.fleet.plots  # noqa: F401 - sets matplotlib up
from simulation.evidence import days
from simulation.evidence.cases import DAY_BEAT_S
from simulation.evidence.claims import QUALITY_ROWS
from simulation.evidence.household import Household
from simulation.evidence.ledger import Ledger
from simulation.evidence.quality import BIN
from simulation.evidence.report import Results
from simulation.evidence.throttle import DOMAIN, THROTTLED, trace
from simulation.fleet.outcome import spread
from simulation.fleet.physics import MODELS, REFERENCE_GB, Span

COLOURS = {"sample_count": "#8c959f", "row_fallback": "#d0a36a", "ours_thumbs": "#79a8e8", "ours": "#1f6feb"}
UNNAMED = "_unnamed"
"""matplotlib leaves such a label out of the legend."""
PURPOSES = {"probe": "#1f6feb", "shadow": "#8250df", "judge": "#bf3989"}


def draw(results: Results, folder: Path) -> list[Path]:
    """One picture for each case that has results; the paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = {"quality": _quality, "throttled": _throttled, "day": _day}
    written = []
    for case, picture in wanted.items():
        if results.get(case):
            path = folder / f"simulation-evidence-{case}.svg"
            picture(results, path)
            written.append(path)
    return written


def _quality(results: Results, path: Path) -> None:
    figure, axis = pyplot.subplots(figsize=(9, 3.8))
    seeds = results["quality"]
    ends = sorted({int(name.partition("@")[2]) for name in seeds[0] if "@" in name})
    for name, title in QUALITY_ROWS:
        found = [spread([numbers[f"{name} @{end}"] for numbers in seeds]) for end in ends]
        axis.errorbar(
            [end - BIN / 2 for end in ends], [f.mean for f in found], yerr=[f.error for f in found], label=title,
            color=COLOURS[name], marker="o", markersize=3,
        )  # fmt: skip
    axis.axvline(600, color="#57606a", linestyle=":", label="a better model joins")
    axis.set_ylim(bottom=0.0)
    axis.set_xlabel("task")
    axis.set_ylabel("points of 100 lost per task")
    axis.legend(fontsize=8)
    _save(figure, "Quality regret, 30 % of tasks with a thumb", path)


def _throttled(results: Results, path: Path) -> None:
    """One machine's runs: what it does, and what is expected of it before each."""
    figure, axis = pyplot.subplots(figsize=(9, 3.2))
    rates = trace("F6", 0)
    runs = range(1, len(rates) + 1)
    size = MODELS[DOMAIN.model] / REFERENCE_GB
    axis.step(runs, [true / size for true, _ in rates], where="mid", color="#57606a", label="what the machine does")
    axis.plot(runs, [expected for _, expected in rates], color="#1f6feb", label="what is expected after each run")
    axis.axvspan(0.5, THROTTLED + 0.5, color="#d0a36a", alpha=0.25, label="throttled 4x")
    axis.set_ylim(bottom=0.0)
    axis.set_xlabel("run of the machine")
    axis.set_ylabel("tokens/s")
    axis.legend(fontsize=8)
    _save(figure, "A machine is throttled, and let go", path)


def _day(results: Results, path: Path) -> None:
    """Seed 0, machine by machine."""
    house = Household(days.day(0), heartbeat_s=DAY_BEAT_S)
    house.until(days.DAY)
    ledger, instance = Ledger(house, days.DAY), house.instance
    figure, axis = pyplot.subplots(figsize=(11, 4.2))
    names = list(ledger.machines)[::-1]
    for row, name in enumerate(names):
        for spans, colour, title in (
            (instance.naps.get(name, ()), "#d0d7de", "asleep"),
            ([span[:2] for span in instance.used.get(name, ())], "#d0a36a", "others use it"),
            (instance.unplugged.get(name, ()), "#f2cc60", "on battery"),
        ):
            ends = [(since / days.HOUR, (min(until, days.DAY) - since) / days.HOUR) for since, until in spans]
            axis.broken_barh(ends, (row - 0.4, 0.8), facecolors=colour, label=UNNAMED if row else title)
        hours, busy = zip(*_busy(ledger.real[name]), strict=True)
        axis.fill_between(
            hours, row, [row + 0.4 * share for share in busy], step="post", color="#57606a", linewidth=0,
            label=UNNAMED if row else "busy with tasks, share of each quarter of an hour",
        )  # fmt: skip
        for purpose, colour in PURPOSES.items():
            starts = [e.started / days.HOUR for e in ledger.on(name) if e.started and e.work.purpose == purpose]
            axis.vlines(starts, row - 0.4, row, color=colour, linewidth=0.8, label=UNNAMED if row else purpose)
    axis.set_yticks(range(len(names)), names)
    axis.set_xlim(0, 24)
    axis.set_xticks(range(0, 25, 2))
    axis.set_xlabel("hour")
    axis.legend(fontsize=7, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.18))
    _save(figure, "A day's tasks (grey, above) and bench work (lines, below), seed 0", path)


def _busy(spans: list[Span]) -> Iterator[tuple[float, float]]:
    """(hour, share of the quarter of an hour from there that tasks ran in)."""
    quarter = days.HOUR / 4
    for at in range(96):
        since, until = at * quarter, (at + 1) * quarter
        yield at / 4, sum(max(0.0, min(end, until) - max(begun, since)) for begun, end in spans) / quarter


def _save(figure: Figure, title: str, path: Path) -> None:
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
