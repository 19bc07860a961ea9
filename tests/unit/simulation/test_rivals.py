"""The rules that ours is compared with do what their names say, and are as bad as they were measured to be."""

from __future__ import annotations

import itertools

import pytest

from services.router.dispatch.permits import Limit, Limits
from simulation.fleet import instances
from simulation.fleet.legacy import LegacyAsPublished, LegacyMended
from simulation.fleet.rival_world import Rule, World
from simulation.fleet.rivals import GpuStack, LeastInFlight, Pull, PullFastFirst, Random, RoundRobin

RULES: tuple[type[Rule], ...] = (
    Random, RoundRobin, LeastInFlight, GpuStack, LegacyAsPublished, LegacyMended, Pull, PullFastFirst,
)  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_serves_everything_once_and_no_machine_runs_two_at_a_time(rule: type[Rule]) -> None:
    run = World(instances.bursty("F3", 1, tasks=80), rule()).run()
    assert sorted(d.job for d in run.done) == sorted(job.id for job in run.instance.jobs)
    for name in ("desk", "laptop", "mini"):
        mine = sorted((d.start, d.end) for d in run.done if d.machine == name)
        assert all(ended <= begun + 1e-9 for (_, ended), (begun, _) in itertools.pairwise(mine))


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_replays_exactly(rule: type[Rule]) -> None:
    instance = instances.steady("F2", 3, load=0.4, tasks=60)
    assert World(instance, rule()).run().digest == World(instance, rule()).run().digest


def test_the_published_formula_sends_everything_to_the_machine_that_says_nothing() -> None:
    run = World(instances.steady("F3", 1, load=0.2, tasks=60), LegacyAsPublished()).run()
    assert run.share_of("laptop") == 1.0


def test_the_mended_formula_lets_the_loop_open() -> None:
    run = World(instances.steady("F3", 1, load=0.2, tasks=60), LegacyMended()).run()
    assert run.share_of("laptop") < 0.5


def test_round_robin_gives_everybody_the_same() -> None:
    run = World(instances.steady("F2", 1, load=0.2, tasks=60), RoundRobin()).run()
    assert run.share_of("desk") == 0.5


def test_what_ran_on_a_machine_that_vanished_runs_again_elsewhere() -> None:
    made = instances.sleeping("F2", 1, tasks=60)
    run = World(made, Pull()).run()
    gone, back = made.away["desk"]
    assert run.complete
    assert not [d for d in run.done if d.machine == "desk" and gone < d.end < back]


def test_the_shared_queue_keeps_limits_and_skips_what_is_full() -> None:
    run = World(instances.burst("F3", 1), Pull(), Limits(model=Limit(1))).run()
    for model in {d.model for d in run.done}:
        mine = sorted((d.start, d.end) for d in run.done if d.model == model)
        assert all(ended <= begun + 1e-9 for (_, ended), (begun, _) in itertools.pairwise(mine))
