"""Our own policy in virtual time is the product's: its desk decides, its facts say what happened."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import simulation.fleet.product as harness
from schemas.events import AttemptFailed, TaskCompleted, TaskReleased, TaskStarted
from services.router.desk import Desk
from services.router.dispatch import planner
from simulation.fleet import instances
from simulation.fleet.legacy import LegacyAsPublished
from simulation.fleet.oracle import oracle
from simulation.fleet.product import Product
from simulation.fleet.rival_world import World
from simulation.fleet.rivals import LeastInFlight, RoundRobin
from support.source import ROOT, imports


def test_every_release_comes_from_the_products_planner(monkeypatch: pytest.MonkeyPatch) -> None:
    """It imports the product's desk, and a planner that releases nothing leaves everything waiting."""
    assert type(Product(instances.burst("F2", 1)).desk) is Desk
    monkeypatch.setattr(planner, "RELEASES_MOST", 0)
    monkeypatch.setattr(harness, "HORIZON_S", 100.0)
    product = Product(instances.burst("F2", 1, tasks=3))
    product.run()
    assert product.done == []


def test_only_the_clairvoyant_plans_in_the_simulation() -> None:
    """No file between the desk and the machines knows a duration in advance, or imports what does."""
    for name in ("product", "station"):
        modules = set(imports(f"simulation/fleet/{name}.py"))
        assert not modules & {"simulation.fleet.oracle", "simulation.fleet.bound", "simulation.fleet.rivals"}
        text = ast.unparse(ast.parse(Path(ROOT, f"simulation/fleet/{name}.py").read_text(encoding="utf-8")))
        assert "services.router.dispatch.planner" not in text
    assert "services.router.dispatch.planner" in sys.modules


def test_one_seed_is_one_history() -> None:
    instance = instances.bursty("F3", 4, tasks=60)
    first, second = Product(instance).run(), Product(instance).run()
    assert (first.digest, len(first.log)) == (second.digest, len(second.log))
    assert first.digest != Product(instances.bursty("F3", 5, tasks=60)).run().digest


def test_every_task_is_released_started_and_completed_once() -> None:
    run = Product(instances.steady("F3", 1, load=0.4, tasks=60)).run()
    assert run.complete
    for kind in (TaskReleased, TaskStarted, TaskCompleted):
        assert sorted(e.task for e in run.log if isinstance(e, kind)) == sorted(job.id for job in run.instance.jobs)


def test_a_machine_that_vanishes_loses_what_it_ran_and_nothing_else() -> None:
    lost = 0
    for seed in range(4):
        run = Product(instances.sleeping("F2", seed, tasks=60), pulse_s=1.0).run()
        assert run.complete
        failures = [e.failure for e in run.log if isinstance(e, AttemptFailed)]
        assert set(failures) <= {"lost", "not_started"}
        lost += failures.count("lost")
        assert len(failures) <= 2, "one slot: what ran there, or what was on its way there"
    assert lost > 0, "it vanishes in the middle of something at least once"


@pytest.mark.parametrize("fleet", ["F2", "F3", "F6"])
def test_a_cold_burst_ends_far_sooner_than_with_the_rules_of_today(fleet: str) -> None:
    """Loose: three seeds. `make sim` has the tight ones over 32."""
    ours, legacy, turn, least, best = 0.0, 0.0, 0.0, 0.0, 0.0
    for seed in range(3):
        instance = instances.burst(fleet, seed)
        ours += Product(replace(instance, known=3), pulse_s=1.0).run().makespan_s
        legacy += World(instance, LegacyAsPublished()).run().makespan_s
        turn += World(instance, RoundRobin()).run().makespan_s
        least += World(instance, LeastInFlight()).run().makespan_s
        best += oracle(instance, lambda o: o.makespan_s).makespan_s
    assert legacy / ours > 4.0
    assert min(turn, least) / ours > 1.5
    assert ours / best < 1.5


def test_under_load_it_stays_near_the_clairvoyant() -> None:
    """Loose: three seeds."""
    ratios = []
    for seed in range(3):
        instance = instances.steady("F3", seed, load=0.4, tasks=150)
        run = Product(instance, pulse_s=1.0).run()
        ratios.append(run.mean_s / oracle(instance, lambda o: o.mean_s).mean_s)
    assert sum(ratios) / len(ratios) < 1.4


def test_serial_machines_in_a_closed_loop_share_the_work_by_their_speed() -> None:
    instance = instances.closed_loop([0.1, 0.3, 0.9], 1, tasks=60, concurrency=6, warmup=9)
    run = Product(instance).run()
    assert len(run.counted) == 60
    assert 4.15 <= run.makespan_s < 6.5
    assert run.share_of("m1") > run.share_of("m2") > run.share_of("m3") > 0
