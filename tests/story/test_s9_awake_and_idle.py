"""S9: benchmarks ran at night, and a machine that sleeps at night was never measured.

What must hold instead: a machine is measured when it is awake and idle. No hour of the day means anything.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from services.benchmarker.budget import why_not
from support.bench_world import World
from support.eventually import eventually
from support.proving import MODEL, Proof
from support.stub_server import Pace, StubServer
from support.told_fleets import Machine, beats, chats, known, measuring, probed, told_fleet

QUICK = "[benchmarker]\nidle_s = 0.5\nprobe_tokens = 16\n"
HOUR_S = 3600.0


@pytest.mark.parametrize("hour", range(0, 24, 3))
def test_at_any_hour_a_machine_is_owed_a_probe_and_may_be_asked_for_it_once_it_is_idle(hour: int) -> None:
    world = World()
    world.passes(hour * HOUR_S)
    world.join("desk", "m")
    world.passes(6.0)
    debt = world.debts()[0]
    assert (debt.worker, debt.reason, why_not(debt, world.fleet, world.now_us)) == ("desk", "joined", None)


@pytest.mark.parametrize("asleep_at", [1, 9, 15, 22])
def test_who_sleeps_is_asked_nothing_and_is_measured_as_soon_as_it_wakes(asleep_at: int) -> None:
    world = World()
    world.passes(asleep_at * HOUR_S)
    world.join("desk", "m")
    world.probed("desk")
    world.passes(9 * HOUR_S, asleep=("desk",))
    assert all(why_not(debt, world.fleet, world.now_us) == "it is silent" for debt in world.debts())
    world.passes(10.0)
    debt = world.debts()[0]
    assert (debt.reason, why_not(debt, world.fleet, world.now_us)) == ("woke", None)


async def test_s9_a_machine_that_slept_through_the_round_is_measured_when_it_wakes(tmp_path: Path) -> None:
    """The benchmarker measures whoever is awake. The other one, which is the faster, wakes later."""
    machines = {
        "awake": Machine(StubServer({MODEL: Pace(token_s=0.02)})),
        "sleeper": Machine(StubServer({MODEL: Pace(token_s=0.001)})),
    }
    async with told_fleet(tmp_path, machines, QUICK) as proof:
        with proof.frozen("worker sleeper"):
            await eventually(lambda: silent(proof, "sleeper"), every_s=0.5)
            await measuring(proof, tmp_path)
            await eventually(lambda: probed(proof, "awake"), every_s=0.2)
            assert await probed(proof, "sleeper") == [], "it sleeps"
        assert len(await eventually(lambda: probed(proof, "sleeper"), every_s=0.2)) == 1
        await proof.quiet()
        await known(proof)
        await beats(proof, 2)
        assert await chats(proof, 3, at_once=1, max_tokens=60, headrace={"domain": "general"}) == ["sleeper"] * 3


async def silent(proof: Proof, machine: str) -> bool:
    return bool((await proof.workers())[machine]["state"] == "silent")
