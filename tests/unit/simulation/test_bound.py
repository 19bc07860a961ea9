"""No policy and no oracle ends a burst below the proven bound."""

from __future__ import annotations

import pytest

from simulation.fleet import instances
from simulation.fleet.bound import burst_bound_s
from simulation.fleet.oracle import ORDERS, Clairvoyant, oracle
from simulation.fleet.product import Product
from simulation.fleet.rival_world import World
from simulation.fleet.rivals import LeastInFlight, Pull, PullFastFirst


@pytest.mark.parametrize("fleet", ["F2", "F3", "F6"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nothing_beats_the_bound(fleet: str, seed: int) -> None:
    instance = instances.burst(fleet, seed)
    bound = burst_bound_s(instance)
    runs = [World(instance, rule()).run() for rule in (LeastInFlight, Pull, PullFastFirst)]
    runs += [World(instance, Clairvoyant(order, free=free)).run() for order in ORDERS for free in (False, True)]
    runs.append(Product(instance, pulse_s=1.0).run())
    assert {run.policy: run.makespan_s for run in runs if run.makespan_s < bound} == {}


def test_the_bound_is_no_formality() -> None:
    """One task: its run and its load on the machine where the two together are least."""
    instance = instances.burst("F6", 1, tasks=1)
    job = instance.jobs[0]
    least = min(
        instance.load_s(job.model or "", m) + sum(instance.run_s(job, job.model or "", m, 0.0))
        for m in instance.machines
    )
    assert burst_bound_s(instance) == pytest.approx(least, rel=1e-3)
    assert oracle(instance, lambda o: o.makespan_s).makespan_s == pytest.approx(least, rel=1e-3)


def test_the_oracle_is_the_best_of_its_orders() -> None:
    instance = instances.steady("F3", 2, load=0.75, tasks=80)
    each = [World(instance, Clairvoyant(order)).run().mean_s for order in ORDERS]
    assert oracle(instance, lambda o: o.mean_s).mean_s == min(each)
