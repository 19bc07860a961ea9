"""One seed of one case: every policy in the same world, and the numbers that came out.

Answers "what is measured, on what, with which policies?". Each function is one cell of work for a process of its own; it returns
plain numbers by policy. ``python -m simulation fleet --case NAME --seed N`` calls the same functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from services.router.dispatch.heard import PULSE_S as FIELD_PULSE_S
from services.router.dispatch.permits import Limit, Limits
from simulation.check import check_log
from simulation.fleet import instances
from simulation.fleet.bound import burst_bound_s
from simulation.fleet.legacy import LegacyAsPublished, LegacyMended
from simulation.fleet.oracle import clairvoyants, oracle
from simulation.fleet.outcome import Outcome
from simulation.fleet.physics import Instance
from simulation.fleet.product import Product
from simulation.fleet.promises import check_order
from simulation.fleet.rival_world import Rule, World
from simulation.fleet.rivals import GpuStack, LeastInFlight, Pull, PullFastFirst, Random, RoundRobin

Numbers = dict[str, float]

RIVALS: tuple[type[Rule], ...] = (
    Random, RoundRobin, LeastInFlight, GpuStack, LegacyAsPublished, LegacyMended, Pull, PullFastFirst,
)  # fmt: skip
KNOWN = 3
"""Samples of each domain on each machine where speeds count as learned."""
TASKS = 300
OPEN_TASKS = 150
PULSE_S = 1.0
"""Tasks take seconds to minutes here: a pulse a second instead of four keeps ten minutes ten minutes."""


def ours(instance: Instance, *, on_arrival: bool = False, limits: Limits | None = None) -> Outcome:
    pulse_s = FIELD_PULSE_S if instance.concurrency is not None else PULSE_S
    product = Product(instance, on_arrival=on_arrival, pulse_s=pulse_s, limits=limits or Limits())
    outcome = product.run()
    if not outcome.complete:
        raise RuntimeError(
            f"{len(instance.jobs) - len(outcome.done)} tasks of seed {instance.seed} never ended; replay it"
        )
    return outcome


def makespan(outcome: Outcome) -> float:
    return outcome.makespan_s


def mean(outcome: Outcome) -> float:
    return outcome.mean_s


def p95(outcome: Outcome) -> float:
    return outcome.quantile_s(0.95)


def burst(fleet: str, seed: int, *, chat_only: bool = False) -> Numbers:
    """Makespans in seconds."""
    instance = instances.burst(fleet, seed, chat_only=chat_only)
    return {
        "bound": burst_bound_s(instance),
        "oracle": oracle(instance, makespan).makespan_s,
        "oracle, no promises": oracle(instance, makespan, free=True).makespan_s,
        "ours": ours(replace(instance, known=KNOWN)).makespan_s,
        "ours, no data": ours(instance).makespan_s,
        **{rule.name: World(instance, rule()).run().makespan_s for rule in RIVALS},
    }


def chat_burst(fleet: str, seed: int) -> Numbers:
    return burst(fleet, seed, chat_only=True)


def latencies(instance: Instance, rivals: tuple[type[Rule], ...] = RIVALS) -> Numbers:
    """``mean`` and ``p95`` by policy, in seconds; the oracle's order is the best for each of the two."""
    runs = [ours(instance), *(World(instance, rule()).run() for rule in rivals)]
    found = {f"mean {run.policy}": run.mean_s for run in runs}
    found |= {f"p95 {run.policy}": run.quantile_s(0.95) for run in runs}
    found |= {f"p99 {run.policy}": run.quantile_s(0.99) for run in runs}
    kept, free = clairvoyants(instance), clairvoyants(instance, free=True)
    best = {
        "mean oracle": min(map(mean, kept)), "mean oracle, no promises": min(map(mean, free)),
        "p95 oracle": min(map(p95, kept)), "p95 oracle, no promises": min(map(p95, free)),
    }  # fmt: skip
    return best | found


def light(fleet: str, seed: int) -> Numbers:
    return latencies(instances.steady(fleet, seed, load=0.4, tasks=TASKS))


def heavy(fleet: str, seed: int) -> Numbers:
    return latencies(instances.steady(fleet, seed, load=0.75, tasks=TASKS))


def bursty(fleet: str, seed: int) -> Numbers:
    return latencies(instances.bursty(fleet, seed, load=0.4, tasks=TASKS))


def sleeping(fleet: str, seed: int) -> Numbers:
    return latencies(instances.sleeping(fleet, seed, load=0.4, tasks=TASKS), (LeastInFlight, Pull))


def drift(fleet: str, seed: int) -> Numbers:
    return latencies(instances.drift(fleet, seed, load=0.4, tasks=TASKS), (LeastInFlight, Pull))


def joining(fleet: str, seed: int) -> Numbers:
    """The laptop has been here for long, the others come without a sample, at light load: the first hundred tasks."""
    instance = replace(instances.steady(fleet, seed, load=0.2, tasks=100), known=KNOWN, known_on=("laptop",))
    run = ours(instance)
    found = {"mean ours": run.mean_s, "mean oracle": oracle(instance, mean).mean_s}
    found["laptop's share of the first 20"] = sum(d.machine == "laptop" for d in sorted(run.done, key=_start)[:20]) / 20
    found["mean least_in_flight"] = World(instance, LeastInFlight()).run().mean_s
    return found


def open_tasks(instance: Instance) -> Numbers:
    """``mean - quality`` in seconds (the slider is 1), for a model chosen late and on arrival by the same formula."""
    late, early = ours(instance), ours(instance, on_arrival=True)
    return {
        "late": late.mean_s - late.quality, "arrival": early.mean_s - early.quality,
        "late s": late.mean_s, "arrival s": early.mean_s, "late points": late.quality, "arrival points": early.quality,
    }  # fmt: skip


def open_light(fleet: str, seed: int) -> Numbers:
    return open_tasks(_taught(instances.steady(fleet, seed, load=0.4, tasks=OPEN_TASKS, open_models=True)))


def open_heavy(fleet: str, seed: int) -> Numbers:
    return open_tasks(_taught(instances.steady(fleet, seed, load=0.75, tasks=OPEN_TASKS, open_models=True)))


def open_bursty(fleet: str, seed: int) -> Numbers:
    return open_tasks(_taught(instances.bursty(fleet, seed, load=0.4, tasks=OPEN_TASKS, open_models=True)))


def open_burst(fleet: str, seed: int) -> Numbers:
    return open_tasks(_taught(instances.burst(fleet, seed, open_models=True)))


def limits_of(seed: int) -> Limits:
    """Random ones, tight enough to matter: by model, by client and by backend, some with a total."""
    rng = instances.rng_of("limits", seed)
    names = {f"c{n}": rng.randint(1, 3) for n in range(2)}
    return Limits(
        model=Limit(rng.choice([None, 2, 3]), {"large-14b": 1}, rng.choice([None, 4, 5])),
        client=Limit(rng.choice([None, 2, 4]), names),
        backend=Limit(1, {}, rng.choice([None, 4])),
    )


def promises(fleet: str, seed: int, *, tasks: int = 1000) -> Numbers:
    """Random tasks of four clients and three classes under random limits; ``broken`` counts promises that were not kept."""
    limits = limits_of(seed)
    product = Product(instances.random_work(fleet, seed, tasks=tasks, load=0.5), limits=limits, pulse_s=PULSE_S)
    outcome = product.run()
    violations, _ = check_log([event for event, _ in product.log], limits)
    order = check_order(product.log)
    never_ended = len(outcome.instance.jobs) - len(outcome.done)
    return {
        "tasks": float(tasks), "broken": float(len(violations) + len(order.broken) + never_ended),
        "leaked": float(sum(product.desk.state.held.values())), "bypasses most": float(order.bypasses_most),
        "overtaken most s": order.passed_most_s, "inversions": float(order.inversions),
        "p99 ours": outcome.quantile_s(0.99),
        "p99 pull": World(outcome.instance, Pull(), limits).run().quantile_s(0.99),
    }  # fmt: skip


def _taught(instance: Instance) -> Instance:
    return replace(instance, known=KNOWN)


def _start(done: object) -> float:
    return getattr(done, "start", 0.0)


CASES: dict[str, Callable[[str, int], Numbers]] = {
    "burst": burst, "chat_burst": chat_burst, "light": light, "heavy": heavy, "bursty": bursty, "sleep": sleeping,
    "drift": drift, "joining": joining, "open_light": open_light, "open_heavy": open_heavy, "open_bursty": open_bursty,
    "open_burst": open_burst, "promises": promises,
}  # fmt: skip
