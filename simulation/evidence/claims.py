"""What the evidence loop promises, and the tables that show it. Pure.

Answers "what must hold?", in the order of ROUTING.md's targets.
"""

from __future__ import annotations

from simulation.evidence.report import Claim, Results, table, targets

QUALITY_ROWS = (
    ("sample_count", "sample count (legacy evidence score)"),
    ("row_fallback", "row-level fallback"),
    ("ours_thumbs", "ours, thumbs alone"),
    ("ours", "ours, with shadow pairs"),
)
BEFORE_AFTER = (("first", "tasks 1 to 600"), ("after", "601 to 1,200, with a better model"))
RUNS = (
    ("F3", "F3, chat alone"),
    ("F6", "F6, chat alone"),
    ("F3 mixed", "F3, all domains"),
    ("F6 mixed", "F6, all domains"),
)

FLEETS = ("F2", "F3", "F6")
MACHINES = ("laptop", "desk", "mini")

CLAIMS = (
    *(
        Claim(f"the laptop's share of the first 20 tasks, it has 100 samples and the others none, {fleet}", "joining",
              f"laptop probes {fleet}", 5, " %")
        for fleet in FLEETS
    ),
    *(
        Claim(f"first 100 tasks then, mean latency / oracle, {fleet}", "joining", f"probes {fleet}", 1.15)
        for fleet in FLEETS
    ),
    Claim("a machine asleep at night: seconds awake and idle until it is probed, worst", "nights", "idle at night", 30,
          worst=True),
    Claim("asleep at any other time", "nights", "idle at any time", 30, worst=True),
    Claim("quality regret / sample count, 30 % thumbs", "quality", "ours first", 0.60, under="sample_count first"),
    Claim("the same after a better model joins", "quality", "ours after", 0.30, under="sample_count after"),
    Claim("quality regret / sample count, 10 % thumbs", "quality_few", "ours first", None, under="sample_count first"),
    Claim("the same after a better model joins", "quality_few", "ours after", None, under="sample_count after"),
    Claim("runs until a machine throttled 4x has lost its rank, worst seed, F3", "throttled", "lost F3", 10, worst=True),
    Claim("the same, F6", "throttled", "lost F6", 10, worst=True),
    Claim("runs until it has regained it, worst seed, F3", "throttled", "regained F3", 10, worst=True),
    Claim("the same, F6", "throttled", "regained F6", 10, worst=True),
    Claim("the same of mixed work, of which the cell looked at is 45 %: lost, F3", "throttled", "lost F3 mixed", 10),
    Claim("regained, F3", "throttled", "regained F3 mixed", 10),
    Claim("unasked work in a day, of the machine's time awake, worst machine and seed", "day", "budget most", 2, " %",
          worst=True),
    Claim("asked of the silent machine besides its probes on joining", "day", "beyond join", 0, worst=True),
    Claim("bench work begun while others use 10 % of the machine or more", "day", "beside others", 0, worst=True),
    Claim("begun on battery", "day", "on battery", 0, worst=True),
    Claim("most that a task waited for bench work, in probes of 64 tokens", "day", "delay most", 1, worst=True),
    Claim("models driven out of a machine that was in use", "day", "driven out", 0, worst=True),
)  # fmt: skip


def document(results: Results) -> str:
    """All tables there are results for."""
    lines = ["### Targets of the evidence loop", "", *targets(results, CLAIMS)]
    for case, title in (("quality", "30 %"), ("quality_few", "10 %")):
        if rows := table(results, case, BEFORE_AFTER, QUALITY_ROWS):
            lines += ["", f"### Quality regret, points of 100 per task, {title} of tasks with a thumb", "", *rows]
    rows = table(
        results, "quality", (("runs", "a seed"),),
        (("shadow", "shadow runs, of 300 that were allowed"), ("verdicts of", "verdicts"),
         ("newcomer", "evaluations of the newcomer in the domain that had the fewest")),
    )  # fmt: skip
    if rows:
        lines += ["", "### What the evaluations took", "", *rows]
    if rows := table(results, "throttled", RUNS, (("lost", "rank lost after"), ("regained", "regained after"))):
        lines += ["", "### Runs of a machine until its throttling, and its end, is known", "", *rows]
    rows = table(
        results, "joining", [(fleet, fleet) for fleet in FLEETS],
        (("probes", "mean latency / oracle, with probes"), ("no probes", "without"),
         ("laptop probes", "laptop's share of the first 20, %, with probes"), ("laptop no probes", "without"),
         ("asked", "pieces of bench work")),
    )  # fmt: skip
    if rows:
        lines += ["", "### First 100 tasks when only the laptop has samples, load 0.2", "", *rows]
    rows = table(
        results, "day", [(machine, machine) for machine in MACHINES],
        (("budget", "unasked work within the budget, % of its time awake"), ("apart", "probes on join, wake and new model, %"),
         ("asked", "pieces of bench work")),
    )  # fmt: skip
    if rows:
        lines += ["", "### A day's bench work", "", *rows]
    return "\n".join(lines) + "\n"
