"""``python -m simulation [--seed N | --seeds N]``: run histories, print violations, and the seeds that replay them.

``python -m simulation fleet ...`` measures the planner on a fleet instead, ``... evidence ...`` what the fleet finds out by
itself; see ``--help`` there."""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from simulation.world import run


def main() -> int:
    if sys.argv[1:2] == ["fleet"]:
        from simulation.fleet.command import main as fleet

        return fleet(sys.argv[2:])
    if sys.argv[1:2] == ["evidence"]:
        from simulation.evidence.command import main as evidence

        return evidence(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay one seed and print its report")
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds to run (default 1000)")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    args = parser.parse_args()
    seeds = [args.seed] if args.seed is not None else range(args.first, args.first + args.seeds)
    kinds: Counter[str] = Counter()
    failed = tasks = crashes = 0
    for seed in seeds:
        report = run(seed)
        kinds.update(report.kinds)
        tasks += report.tasks
        crashes += report.router_crashes + report.kills
        if report.violations:
            failed += 1
            print(f"seed {seed}: {len(report.violations)} violations; first: {report.violations[0]}")
        if args.seed is not None:
            print(report)
    print(f"{len(seeds)} seeds, {tasks} tasks, {crashes} crashes, {failed} seeds with violations")
    print("  ".join(f"{kind} {n}" for kind, n in sorted(kinds.items())))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
