"""``python -m simulation evidence``: run cases over seeds on every core, print the tables, write plots; or repeat one seed.

Answers "does the fleet learn what it must, and at what price?" with exit status 1 where it does not.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from services.runtime.logs import configure
from simulation.evidence.cases import CASES, SEEDS
from simulation.evidence.claims import CLAIMS, document
from simulation.evidence.report import Numbers, Results, missed
from simulation.pages import write_between

START, END = "<!-- evidence: make sim writes it -->", "<!-- end of evidence -->"


def main(argv: list[str]) -> int:
    args = _arguments(argv)
    configure({"HEADRACE_LOG_LEVEL": "error"} | os.environ)  # the product's own parts run here, and say so line by line
    if args.seed is not None:
        return _one(args.case, args.seed)
    began = time.monotonic()
    results = run(args.case, args.seeds, args.jobs)
    text = document(results)
    print(text)
    if args.write is not None:
        _write(results, text, args.write)
    bad = missed(results, CLAIMS)
    print(f"{time.monotonic() - began:.0f} s on {args.jobs} processes; {bad} targets missed")
    return 1 if bad else 0


def run(cases: list[str], seeds: int, jobs: int) -> Results:
    """The results are in the order of the seeds, however many processes there were."""
    work = [(case, seed) for case in cases for seed in range(min(seeds, SEEDS[case]))]
    with ProcessPoolExecutor(jobs) as pool:
        found = list(pool.map(_case, work))
    results: Results = {}
    for (case, _), numbers in zip(work, found, strict=True):
        results.setdefault(case, []).append(numbers)
    return results


def _case(work: tuple[str, int]) -> Numbers:
    case, seed = work
    return CASES[case](seed)


def _one(cases: list[str], seed: int) -> int:
    for case in cases:
        print(f"{case} seed {seed}")
        for name, value in CASES[case](seed).items():
            print(f"  {name:40} {value:10.3f}")
    return 0


def _write(results: Results, text: str, folder: Path) -> None:
    """Plots into ``images``, tables into the marked part of ``simulation.md``."""
    from simulation.evidence.plots import draw

    for path in draw(results, folder / "images"):
        print(f"wrote {path}")
    write_between(folder / "simulation.md", START, END, text)


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulation evidence", description=__doc__)
    parser.add_argument("--seed", type=int, help="repeat one seed of the cases and print its numbers")
    parser.add_argument("--seeds", type=int, default=max(SEEDS.values()), help="at most so many of each case")
    parser.add_argument("--case", action="append", choices=sorted(CASES), help="which (default all); may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--write", type=Path, metavar="DOCS", help="write plots and tables into this folder")
    args = parser.parse_args(argv)
    args.case = args.case or list(CASES)
    return args
