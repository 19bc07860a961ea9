"""Debts are worked out a little at a time, and the same whoever works them out."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from services.benchmarker import owing
from services.benchmarker.asking import Asking
from services.benchmarker.ground import Ground
from services.benchmarker.owing import Owing
from services.runtime.bus import Bus
from services.runtime.clock import SystemClock
from services.runtime.settings import Benchmarker as Settings
from support.bench_world import World


def a_world(machines: int = 4) -> World:
    world = World()
    for n in range(machines):
        world.join(f"w{n}", *(f"m{model}" for model in range(6)))
    for domain in ("code", "maths", "general"):
        world.ran("w0", "m0", domain)
        world.ran("w1", "m1", domain)
    world.passes(20)
    return world


def ground_of(world: World) -> Ground:
    clock = SystemClock()
    ground = Ground(cast(Bus, None), cast(Asking, None), clock, Settings(), world.fleet, world.stats)
    ground.ahead_us = world.now_us - int(clock.monotonic() * 1e6)
    return ground


async def test_it_comes_to_the_same_and_gives_way_between_two_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owing, "SLICE_S", 0.0)
    world, gave_way, heard = a_world(), [], []
    looking = Owing(ground_of(world), lambda: gave_way.append(1))

    async def others() -> None:
        while True:
            heard.append(1)
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    found = await looking.look(1)
    beside.cancel()
    assert [(d.kind, d.model, d.worker, d.domain, d.reason) for d in found] == [
        (d.kind, d.model, d.worker, d.domain, d.reason) for d in world.debts()
    ]
    assert len(found) > 50
    assert len(gave_way) > 20
    assert len(heard) > 20  # heartbeats and the lease go on meanwhile


async def test_what_took_long_is_not_worked_out_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world()
    looking = Owing(ground_of(world))
    monkeypatch.setattr(owing, "SLICE_S", 0.0)
    monkeypatch.setattr(owing, "PAUSES", 1e6)
    first = await looking.look(1)
    world.join("new", "m9")
    assert await looking.look(2) is first


async def test_a_small_fleet_s_are_worked_out_whenever_something_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owing, "SLICE_S", 60.0)
    world = a_world()
    looking = Owing(ground_of(world))
    first = await looking.look(1)
    world.join("new", "m9")
    assert {debt.worker for debt in await looking.look(2)} - {debt.worker for debt in first} == {"new"}
