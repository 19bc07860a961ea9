"""One seed of each case: the numbers that came out.

Answers "what is measured, on what?". Each function is one cell of work for a process of its own. ``python -m simulation evidence
--case NAME --seed N`` calls the same functions.
"""

from __future__ import annotations

from collections.abc import Callable

from simulation.evidence import days
from simulation.evidence.household import Household
from simulation.evidence.ledger import Ledger
from simulation.evidence.quality import Numbers, quality
from simulation.evidence.throttle import throttle
from simulation.fleet.cases import mean
from simulation.fleet.oracle import oracle
from simulation.fleet.outcome import Done

FEW_THUMBS = 0.10
DAY_BEAT_S = 10.0
"""Between heartbeats of a whole day's machines: half as many as in the field, and each still young enough to count."""


def quality_few(seed: int) -> Numbers:
    """The same where one task in ten gets a thumb."""
    return quality(seed, share=FEW_THUMBS)


def throttled(seed: int) -> Numbers:
    """Runs of the machine until it is no longer expected to be the fastest, and until it is again."""
    found: Numbers = {}
    for fleet in ("F3", "F6"):
        for mixed in (False, True):
            noticed, name = throttle(fleet, seed, mixed=mixed), f"{fleet}{' mixed' if mixed else ''}"
            found |= {f"lost {name}": float(noticed.lost), f"regained {name}": float(noticed.regained)}
    return found


def joining(seed: int) -> Numbers:
    """First 100 tasks when only the laptop has samples: mean latency over the clairvoyant's, with probes and without, and who got
    the first 20."""
    found: Numbers = {}
    for fleet in ("F2", "F3", "F6"):
        instance = days.joining(fleet, seed)
        best_s = oracle(instance, mean).mean_s
        for name, bench in (("probes", True), ("no probes", False)):
            house = Household(instance, bench=bench)
            house.through()
            first = sorted(house.done, key=lambda done: done.start)[:20]
            found[f"{name} {fleet}"] = _mean_s(house.done) / best_s
            found[f"laptop {name} {fleet}"] = 100.0 * sum(done.machine == "laptop" for done in first) / len(first)
            if bench:
                found[f"asked {fleet}"] = float(len(house.errands))
    return found


def nights(seed: int) -> Numbers:
    """Seconds awake and idle until a machine that slept is probed: asleep at night, and at any other time."""
    found: Numbers = {}
    for name, turned in (("at night", False), ("at any time", True)):
        house = Household(days.nights(seed, turned=turned), heartbeat_s=DAY_BEAT_S)
        house.until(2 * days.DAY)
        found[f"idle {name}"] = max(Ledger(house, 2 * days.DAY).idle_until_probed("desk"))
    return found


def day(seed: int) -> Numbers:
    """A day's bench work by machine, in per cent of its awake time, and whom it disturbed."""
    house = Household(days.day(seed), heartbeat_s=DAY_BEAT_S)
    house.until(days.DAY)
    ledger = Ledger(house, days.DAY)
    found: Numbers = {}
    for machine in ledger.machines:
        found[f"budget {machine}"] = ledger.share(machine, free=False)
        found[f"apart {machine}"] = ledger.share(machine, free=True)
        found[f"asked {machine}"] = float(len(ledger.on(machine)))
    found["budget most"] = max(found[f"budget {machine}"] for machine in ledger.machines)
    found["beside others"] = float(sum(len(list(ledger.beside_others(m))) for m in ledger.machines))
    found["on battery"] = float(sum(len(list(ledger.on_battery(m))) for m in ledger.machines))
    found["delay most"] = max(ledger.delays(), default=0.0)
    found["driven out"] = float(ledger.driven_out())
    found["beyond join"] = float(sum(errand.work.reason != "joined" for errand in ledger.on("laptop")))
    found["tasks"] = float(len(house.done))
    return found


def _mean_s(done: list[Done]) -> float:
    return sum(d.end - d.at for d in done) / len(done)


CASES: dict[str, Callable[[int], Numbers]] = {
    "quality": quality, "quality_few": quality_few, "throttled": throttled, "joining": joining, "nights": nights,
    "day": day,
}  # fmt: skip
SEEDS = {"quality": 32, "quality_few": 16, "throttled": 32, "joining": 16, "nights": 6, "day": 6}
