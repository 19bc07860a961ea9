"""The release valve on a real nats-server, before anything is built on it: credit, release, start.

Each log was written down before the code ran. A log is the stream of facts, line by line, in stream order.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import support.valve
from schemas.streams import group_consumer, lane_consumer
from schemas.subjects import group_durable, lane_durable
from services.runtime.bus import Bus
from services.runtime.provision import ensure_consumer
from services.runtime.server import EmbeddedServer
from support.eventually import eventually
from support.natsd import freeze
from support.valve import CAPABILITY, GROUP, MODEL, Hand, Valve

ROOT = Path(__file__).parents[2]
Hire = Callable[..., Coroutine[Any, Any, Hand]]
Build = Callable[..., Coroutine[Any, Any, Valve]]


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as open_:
        yield open_


@pytest.fixture
async def hire(natsd: EmbeddedServer, bus: Bus, stack: AsyncExitStack) -> Hire:
    """A worker on its own connection, with its lane, its pulls out and its credit sent."""

    async def make(name: str, **how: Any) -> Hand:
        await ensure_consumer(bus, group_consumer(CAPABILITY, MODEL, cap=4, members=2))
        await ensure_consumer(bus, lane_consumer(name, slots=2))
        connection = await stack.enter_async_context(await Bus.connect(natsd.url, name=name))
        hand = Hand(connection, name, **{"slots": 2, "priority": 0, **how})
        stack.push_async_callback(hand.close)
        await hand.open()
        return hand

    return make


@pytest.fixture
async def valve_of(bus: Bus, stack: AsyncExitStack) -> Build:
    async def make(*preference: str, **how: Any) -> Valve:
        valve = Valve(bus, preference, **how)
        feed = await valve.start()
        stack.push_async_callback(feed.stop)
        return valve

    return make


TWO_WORKERS = """\
t1 submitted
t2 submitted
t3 submitted
t4 submitted
t5 submitted
t6 submitted
t1.1 released for fast by group
t1.1 started on fast
t2.1 released for fast by group
t2.1 started on fast
t3.1 released for slow by group
t3.1 started on slow
t4.1 released for slow by group
t4.1 started on slow
t1.1 completed on fast
t5.1 released for fast by group
t5.1 started on fast
t3.1 completed on slow
t6.1 released for slow by group
t6.1 started on slow"""


async def test_two_workers_of_two_slots_get_what_was_planned_for_them(hire: Hire, valve_of: Build) -> None:
    valve = await valve_of("fast", "slow")
    slow, fast = await hire("slow", priority=5), await hire("fast", priority=0)
    assert await valve.until(lambda: valve.available("fast") == valve.available("slow") == 2)
    await valve.submit("t1", "t2", "t3", "t4", "t5", "t6")
    await valve.pump()
    for hand, task in ((fast, "t1"), (slow, "t3")):
        hand.finish(task)
        assert await valve.until(lambda hand=hand: valve.available(hand.name) == 1)  # type: ignore[misc]
        await valve.pump()
    assert valve.log == TWO_WORKERS.splitlines()
    assert valve.live_max == 4


async def test_a_burst_of_four_releases_at_once_starts_four_and_the_fast_machine_has_two(
    hire: Hire, valve_of: Build
) -> None:
    valve = await valve_of("fast", "slow")
    await hire("slow", priority=5)
    await hire("fast", priority=0)
    assert await valve.until(lambda: valve.available("fast") == valve.available("slow") == 2)
    await valve.submit("t1", "t2", "t3", "t4")
    plan = zip(("t1", "t2", "t3", "t4"), ("fast", "fast", "slow", "slow"), strict=True)
    released = [await valve.decide(task, worker) for task, worker in plan]
    for release in released:
        await valve.put_item(release)
    assert await valve.until(lambda: len(valve.started) == 4)
    assert sorted(line.rpartition(" ")[2] for line in valve.log if "started" in line) == [
        "fast",
        "fast",
        "slow",
        "slow",
    ]
    assert valve.available("fast") == valve.available("slow") == 0


PERMITS = """\
t1 submitted
t2 submitted
t3 submitted
t1.1 released for fast by group
t1.1 started on fast
t1.1 completed on fast
t2.1 released for fast by group
t2.1 started on fast
t2.1 completed on fast
t3.1 released for fast by group
t3.1 started on fast
t3.1 completed on fast"""


async def test_a_permit_is_held_from_the_release_to_the_stored_end(hire: Hire, valve_of: Build) -> None:
    valve = await valve_of("fast", "slow", cap=1)
    fast, _ = await hire("fast"), await hire("slow", priority=5)
    assert await valve.until(lambda: valve.available("fast") == valve.available("slow") == 2)
    await valve.submit("t1", "t2", "t3")
    for task in ("t1", "t2", "t3"):
        await valve.pump()
        fast.finish(task)
        assert await valve.until(lambda: not valve.live and valve.available("fast") == 2)
    assert valve.log == PERMITS.splitlines()
    assert valve.live_max == 1


DEAD_PULL = """\
t1 submitted
t1.1 released for frozen by group
t1.1 failed: not_started
t1.2 released for slow by lane
t1.2 started on slow
t1.2 completed on slow"""


async def test_an_item_that_went_to_a_frozen_worker_is_revoked_and_its_waking_changes_nothing(
    natsd: EmbeddedServer, bus: Bus, hire: Hire, valve_of: Build
) -> None:
    valve = await valve_of("frozen", "slow", deadline_s=3.0)
    await ensure_consumer(bus, lane_consumer("frozen", slots=1))
    slow = await hire("slow", priority=5)
    command = [sys.executable, str(support.valve.__file__), natsd.url, "frozen"]
    environ = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE) as frozen:
        try:
            assert frozen.stdout is not None
            assert frozen.stdout.readline() == b"armed\n"
            assert await valve.until(lambda: valve.available("frozen") == 1)
            await freeze(frozen)
            await valve.submit("t1")
            await valve.pump()
            info = await bus.api(f"CONSUMER.INFO.TASKS.{GROUP}")
            assert info["num_ack_pending"] == 0, "the deleted item's place is free at once, not after ack_wait"
            frozen.send_signal(signal.SIGCONT)
            assert frozen.stdout.readline() == b"refused t1.1\n"
            slow.finish("t1")
            assert await valve.until(lambda: ("t1", 2) in valve.ended)
        finally:
            frozen.kill()
    assert valve.log == DEAD_PULL.splitlines()


MISSING_GROUP = """\
t1 submitted
t1.1 released for fast by group
t1.1 started on fast
t1.1 completed on fast
t2 submitted
t2.1 released for fast by group
t2.1 started on fast"""


async def test_a_group_that_does_not_exist_costs_the_next_task_nothing(bus: Bus, hire: Hire, valve_of: Build) -> None:
    valve = await valve_of("fast")
    missing = group_durable(CAPABILITY, "nobody-made-this")
    fast = await hire("fast", slots=1, groups=(missing, GROUP))
    assert await valve.until(lambda: valve.available("fast") == 1)
    assert valve.credits["fast"].armed == {GROUP: 0, lane_durable("fast"): 0}, "a credit lists what is really armed"
    await valve.submit("t1")
    await valve.pump()
    await ensure_consumer(bus, group_consumer(CAPABILITY, "nobody-made-this", cap=1, members=1))
    fast.finish("t1")
    assert await valve.until(lambda: missing in valve.credits["fast"].armed and valve.available("fast") == 1)
    await valve.submit("t2")
    await valve.pump()
    assert valve.log == MISSING_GROUP.splitlines()
    assert [item.deliveries for item in fast.taken] == [1, 1]


LOST_ITEM = """\
t1 submitted
t2 submitted
t1.1 released for fast by group
t2.1 released for fast by group
t2.1 started on fast
t1.1 started on fast"""


async def test_an_item_that_its_router_never_put_is_put_by_the_next_one_and_no_other_twice(
    natsd: EmbeddedServer, bus: Bus, hire: Hire, valve_of: Build, stack: AsyncExitStack
) -> None:
    """The router dies between the release of t1 and its item, and after the item of t2, which nobody has pulled yet."""
    first = await valve_of("fast")
    await ensure_consumer(bus, group_consumer(CAPABILITY, MODEL, cap=4, members=2))
    await first.submit("t1", "t2")
    await first.decide("t1", "fast")
    await first.put_item(await first.decide("t2", "fast"))

    second = Valve(await stack.enter_async_context(await Bus.connect(natsd.url, name="second")), ("fast",))
    stack.push_async_callback((await second.start()).stop)
    assert second.waiting == []
    await second.recover()
    await second.recover()
    fast = await hire("fast")
    assert await second.until(lambda: len(second.started) == 2)
    assert await first.until(lambda: len(first.started) == 2), "each has a feed of its own"
    assert second.log == first.log == LOST_ITEM.splitlines()
    assert sorted(item.stream_seq for item in fast.taken) == sorted(second.items.values())
    assert await eventually(lambda: _delivered(bus, 2))


async def _delivered(bus: Bus, count: int) -> bool:
    info = await bus.api(f"CONSUMER.INFO.TASKS.{GROUP}")
    return bool(info["delivered"]["consumer_seq"] == count and info["num_pending"] == 0)


async def test_two_claims_of_one_attempt_let_only_the_first_run(hire: Hire, valve_of: Build, bus: Bus) -> None:
    """The server hands an item out twice (ack_wait, or a cut): the second claim finds the id taken, and terminates."""
    valve = await valve_of("fast", "slow")
    fast, slow = await hire("fast"), await hire("slow", priority=5)
    await valve.submit("t1")
    await valve.until(lambda: valve.available("fast") == 2)
    await valve.pump()
    await slow._attempt(fast.taken[0])
    assert slow.refused.get_nowait() == "t1.1"
    assert valve.log == ["t1 submitted", "t1.1 released for fast by group", "t1.1 started on fast"]
    assert await valve.revoke(("t1", 1)) is False, "a started attempt is left alone"
    assert valve.log[-1] == "t1.1 started on fast"
