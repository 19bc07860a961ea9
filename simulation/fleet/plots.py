"""The tables as pictures: SVG that is the same, byte for byte, for the same numbers.

Answers "how far apart are they?" at a glance. matplotlib is imported here only, and only when pictures are wanted.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

from simulation.fleet.outcome import spread
from simulation.fleet.report import FLEETS, Results

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "headrace"
matplotlib.rcParams["svg.fonttype"] = "none"

from matplotlib import pyplot, ticker  # noqa: E402 - the backend is chosen first

COLOURS = {"ours": "#1f6feb", "oracle": "#57606a", "bound": "#8c959f"}
OTHERS = "#d0a36a"


def draw(results: Results, folder: Path) -> list[Path]:
    """One picture for each case that has results; the paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    wanted = (
        ("burst", "", "Makespan of a cold burst of 20 mixed tasks"),
        ("heavy", "mean ", "Mean latency at load 0.75"),
        ("heavy", "p95 ", "p95 latency at load 0.75"),
        ("bursty", "mean ", "Mean latency, bursty traffic"),
    )
    written = []
    for case, prefix, title in wanted:
        if all(results.get((case, fleet)) for fleet in FLEETS):
            name = f"simulation-{case}{'-' + prefix.strip() if prefix else ''}.svg"
            _bars(results, case, prefix, title, folder / name)
            written.append(folder / name)
    return written


def _bars(results: Results, case: str, prefix: str, title: str, path: Path) -> None:
    figure, axes = pyplot.subplots(1, len(FLEETS), figsize=(11, 3.6), sharey=True)
    names = [name for name in results[case, FLEETS[0]][0] if name.startswith(prefix)][::-1]
    for axis, fleet in zip(axes, FLEETS, strict=True):
        means = [spread([numbers[name] for numbers in results[case, fleet]]) for name in names]
        labels = [name.removeprefix(prefix) for name in names]
        axis.barh(
            labels, [m.mean for m in means], xerr=[m.error for m in means],
            color=[COLOURS.get(label.split(",")[0], OTHERS) for label in labels],
        )  # fmt: skip
        axis.set_xscale("log")
        axis.set_xlim(left=1.0)
        axis.xaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
        axis.xaxis.set_minor_formatter(ticker.NullFormatter())
        axis.set_title(fleet)
        axis.set_xlabel("s")
        axis.grid(axis="x", alpha=0.3)
    figure.suptitle(title)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
