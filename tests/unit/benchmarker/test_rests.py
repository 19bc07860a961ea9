"""What was paid rests for a moment; what nobody could pay rests longer each time, until the fleet holds something else."""

from __future__ import annotations

from services.benchmarker.rests import REST_MOST_S, REST_S, Rests
from support.bench_world import US, World

KEY = ("quality", "m", "code", "w")


def until(rests: Rests, now_us: int) -> float:
    """For how many seconds it rests."""
    seconds = 0
    while rests.rests(KEY, now_us + seconds * US):
        seconds += 30
    return seconds


def test_what_was_paid_rests_the_same_time_each_time() -> None:
    rests = Rests()
    for _ in range(5):
        rests.tried(KEY, 0, asked=True)
        assert until(rests, 0) == REST_S


def test_what_nobody_could_pay_rests_twice_as_long_each_time_and_an_hour_at_most() -> None:
    rests = Rests()
    found = []
    for _ in range(10):
        rests.tried(KEY, 0, asked=False)
        found.append(until(rests, 0))
    assert found[:4] == [30, 60, 120, 240]
    assert found[-1] == REST_MOST_S
    rests.tried(KEY, 0, asked=True)
    assert until(rests, 0) == REST_S


def test_a_new_model_or_file_ends_that_rest_and_the_same_models_told_again_do_not() -> None:
    world, rests = World(), Rests()
    world.join("w", "m")
    rests.look(world.fleet)
    for _ in range(6):
        rests.tried(KEY, world.now_us, asked=False)
    world.join("w", "m", boot="b2")
    rests.look(world.fleet)
    assert rests.rests(KEY, world.now_us + 60 * US)
    world.join("v", "judge")
    rests.look(world.fleet)
    assert not rests.rests(KEY, world.now_us)


def test_a_new_model_does_not_shorten_the_rest_of_what_was_paid() -> None:
    world, rests = World(), Rests()
    rests.tried(KEY, world.now_us, asked=True)
    world.join("v", "judge")
    rests.look(world.fleet)
    assert rests.rests(KEY, world.now_us)
