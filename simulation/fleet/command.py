"""``python -m simulation fleet``: run cases over seeds on every core, print the tables, write plots; or repeat one case.

Answers "is it as good as promised?" with exit status 1 where it is not.
"""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from simulation.fleet.cases import CASES, Numbers
from simulation.fleet.report import FLEETS, Results, document, missed
from simulation.pages import write_between

SEEDS = 32
FEWER = {"sleep": 8, "drift": 8, "joining": 16, "promises": 10}
"""Seeds of the cases that no target rests on, or that are long."""
START, END = "<!-- tables: make sim writes them -->", "<!-- end of tables -->"


def main(argv: list[str]) -> int:
    args = _arguments(argv)
    if args.seed is not None:
        return _one(args.case, args.fleet, args.seed)
    began = time.monotonic()
    results = run(args.case, args.fleet, args.seeds, args.jobs)
    text = document(results, args.seeds)
    print(text)
    if args.write is not None:
        _write(results, text, args.write)
    bad = missed(results) + sum(int(n["broken"]) for seeds in results.values() for n in seeds if "broken" in n)
    print(f"{time.monotonic() - began:.0f} s on {args.jobs} processes; {bad} targets or promises missed")
    return 1 if bad else 0


def run(cases: list[str], fleets: list[str], seeds: int, jobs: int) -> Results:
    """Every case on every fleet; the order of the results is that of the seeds, however many processes there were."""
    work = [
        (case, fleet, seed) for case in cases for fleet in fleets for seed in range(min(seeds, FEWER.get(case, seeds)))
    ]
    found: dict[tuple[str, str, int], Numbers] = {}
    with ProcessPoolExecutor(jobs, initializer=_quiet) as pool:
        running = {pool.submit(CASES[case], fleet, seed): (case, fleet, seed) for case, fleet, seed in work}
        for done in as_completed(running):
            found[running[done]] = done.result()
    results: Results = {}
    for case, fleet, seed in work:
        results.setdefault((case, fleet), []).append(found[case, fleet, seed])
    return results


def _quiet() -> None:
    """The solver prints lines of its own about rounding, past Python, that help nobody."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _one(cases: list[str], fleets: list[str], seed: int) -> int:
    for case in cases:
        for fleet in fleets:
            print(f"{case} {fleet} seed {seed}")
            for name, value in CASES[case](fleet, seed).items():
                print(f"  {name:32} {value:10.3f}")
    return 0


def _write(results: Results, text: str, folder: Path) -> None:
    """Plots into ``images``, tables into the marked part of ``simulation.md``."""
    from simulation.fleet.plots import draw

    for path in draw(results, folder / "images"):
        print(f"wrote {path}")
    write_between(folder / "simulation.md", START, END, text)


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m simulation fleet", description=__doc__)
    parser.add_argument("--seed", type=int, help="repeat one seed of the cases and print its numbers")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"seeds of each case (default {SEEDS})")
    parser.add_argument("--case", action="append", choices=sorted(CASES), help="which (default all); may be repeated")
    parser.add_argument("--fleet", action="append", choices=FLEETS, help="which (default all); may be repeated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--write", type=Path, metavar="DOCS", help="write plots and tables into this folder")
    args = parser.parse_args(argv)
    args.case, args.fleet = args.case or list(CASES), args.fleet or list(FLEETS)
    return args
