"""Which debts the benchmarker begins beside each other, and how long it waits for one."""

from __future__ import annotations

import asyncio
from typing import cast

from schemas.events import ModelInfo
from services.benchmarker.asking import Asking, Asks
from services.benchmarker.debts import Debt
from services.benchmarker.ground import Ground, Pay
from services.benchmarker.service import Benchmarker
from services.benchmarker.watched import Payment
from services.runtime.bus import Bus
from services.runtime.clock import SystemClock
from services.runtime.settings import Benchmarker as Settings
from support.bench_world import World, info
from support.eventually import PATIENCE_S


def debt(model: str, worker: str, domain: str = "code", kind: str = "quality") -> Debt:
    return Debt(kind=kind, model=model, worker=worker, domain=domain, reason="unjudged", gain=1.0)  # type: ignore[arg-type]


def benchmarker(world: World, pay: Pay, pay_most_s: float = 900.0) -> Benchmarker:
    clock = SystemClock()
    ground = Ground(cast(Bus, None), cast(Asking, None), clock, Settings(budget=1.0), world.fleet, world.stats)
    ground.ahead_us = world.now_us - int(clock.monotonic() * 1e6)
    return Benchmarker(ground, "b", payers={"quality": pay, "probe": pay}, answers={}, pay_most_s=pay_most_s)


def idle_world() -> World:
    world = World()
    shared: tuple[ModelInfo, ...] = (info("a"), info("b"))
    world.join("w1", *shared)
    world.join("w2", *shared)
    world.ran("w1", "a", "code", times=8)
    world.passes(60)
    return world


def why_not(service: Benchmarker, owed: Debt, now_us: int) -> str | None:
    return service._rests_now(owed, now_us) or service._why_not(owed, now_us)


async def for_ever() -> None:
    await asyncio.Event().wait()


async def paid(_: Debt, __: Asks) -> bool:
    return True


async def test_two_machines_never_compare_answers_about_one_domain_at_once() -> None:
    """They would choose the same pair on the same prompt, and count it twice."""
    service = benchmarker(idle_world(), paid)
    now_us = service._ground.now_us()
    assert why_not(service, debt("a", "w2"), now_us) is None
    running = asyncio.create_task(for_ever())
    service._payments[running] = Payment(debt("b", "w1"))
    assert why_not(service, debt("a", "w2"), now_us) == "answers about code are compared at this moment"
    assert why_not(service, debt("a", "w2", "maths"), now_us) is None
    assert why_not(service, debt("a", "w2", kind="probe"), now_us) is None
    running.cancel()


async def test_a_payment_that_waits_for_what_does_not_come_is_given_up() -> None:
    async def waits(_: Debt, __: Asks) -> bool:
        await for_ever()
        return True

    service = benchmarker(idle_world(), waits, pay_most_s=0.01)
    service._begin(debt("a", "w1"))
    (payment,) = service._payments
    await asyncio.wait_for(payment, PATIENCE_S)
    assert why_not(service, debt("a", "w1"), service._ground.now_us()) == "it was tried a moment ago"


async def test_a_debt_that_nobody_could_pay_is_tried_less_and_less_often() -> None:
    async def nobody(_: Debt, __: Asks) -> bool:
        return False

    service = benchmarker(idle_world(), nobody)
    for _ in range(4):
        service._begin(debt("a", "w1"))
        (payment,) = service._payments
        await payment
        await asyncio.sleep(0)
    later_us = service._ground.now_us() + 200 * 1_000_000
    assert service._rests.rests(("quality", "a", "code", "w1"), later_us)
