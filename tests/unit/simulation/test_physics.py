"""What is true in the simulated fleet."""

from __future__ import annotations

import itertools

import pytest

from simulation.fleet import instances
from simulation.fleet.outcome import spread
from simulation.fleet.physics import DOMAINS, FLEETS, MACHINES, MODELS, Memory, capacity, mean_service_s


def test_the_fast_machine_is_seven_times_as_fast_as_the_slow_one() -> None:
    assert MACHINES["desk"].decode / MACHINES["laptop"].decode == pytest.approx(7.3)


def test_a_full_memory_forgets_what_was_used_longest_ago() -> None:
    memory = Memory(10.0)
    assert [memory.touch(model) for model in ("small-3b", "chat-8b", "small-3b")] == [False, False, True]
    memory.touch("code-8b")
    assert memory.resident == ["small-3b", "code-8b"]


def test_a_model_larger_than_the_rest_of_the_memory_empties_it() -> None:
    memory = Memory(10.0, ["small-3b", "chat-8b"])
    memory.touch("large-14b")
    assert memory.resident == ["large-14b"]


def test_a_seed_is_one_instance_and_another_seed_another_one() -> None:
    assert instances.steady("F3", 5, load=0.4) == instances.steady("F3", 5, load=0.4)
    assert instances.steady("F3", 5, load=0.4).jobs != instances.steady("F3", 6, load=0.4).jobs


def test_arrivals_come_at_the_load_asked_for() -> None:
    rates = []
    for seed in range(20):
        jobs = instances.steady("F2", seed, load=0.5).jobs
        rates.append(len(jobs) / jobs[-1].at / capacity(tuple(MACHINES[name] for name in FLEETS["F2"])))
    assert spread(rates).mean == pytest.approx(0.5, rel=0.05)


def test_bursty_traffic_has_the_same_load_and_comes_in_heaps() -> None:
    gaps = []
    for seed in range(20):
        jobs = instances.bursty("F2", seed, load=0.4).jobs
        gaps.append(sum(b.at - a.at < 0.5 for a, b in itertools.pairwise(jobs)) / len(jobs))
    assert spread(gaps).mean > 0.5


def test_lengths_have_the_means_of_their_domain() -> None:
    jobs = [job for seed in range(20) for job in instances.steady("F2", seed, load=0.4).jobs]
    for domain in DOMAINS:
        mine = [job.output for job in jobs if job.domain == domain.label]
        assert spread([float(n) for n in mine]).mean == pytest.approx(domain.output, rel=0.1)


def test_a_throttled_machine_is_slower_from_its_moment_on() -> None:
    made = instances.drift("F2", 1)
    job, desk = made.jobs[0], MACHINES["desk"]
    before, after = (sum(made.run_s(job, "chat-8b", desk, at)) for at in (0.0, 1e6))
    assert after == pytest.approx(4.0 * before)


def test_every_model_fits_somewhere_and_a_mean_task_takes_seconds() -> None:
    assert all(gb <= max(m.vram for m in MACHINES.values()) for gb in MODELS.values())
    assert 4.0 < mean_service_s(MACHINES["desk"]) < 6.0
