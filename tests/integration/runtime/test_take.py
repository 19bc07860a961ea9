"""services.runtime.take on a real nats-server: never more than asked for, best group first, nothing given back."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import pytest

from schemas.errors import BusError
from schemas.streams import group_consumer, lane_consumer
from schemas.subjects import group_durable, item_id, item_subject, lane_durable
from services.runtime.bus import Bus
from services.runtime.provision import delete_consumer, ensure_consumer
from services.runtime.server import EmbeddedServer
from services.runtime.take import Round, Taken, Taker
from support.eventually import PATIENCE_S, eventually

MODELS = ("a", "b", "c")
GROUPS = [(group_durable("chat", model), 0) for model in MODELS]


async def put(bus: Bus, model: str, task: str, lane: str = "any") -> int:
    ack = await bus.publish_stored(item_subject("chat", model, lane, task, 1), task.encode(), item_id(task, 1))
    return ack.seq


def tasks(items: list[Taken]) -> list[str]:
    return [item.data.decode() for item in items]


async def in_flight(bus: Bus, durable: str) -> int:
    return int((await bus.api(f"CONSUMER.INFO.TASKS.{durable}"))["num_ack_pending"])


@pytest.fixture
async def groups(bus: Bus) -> list[tuple[str, int]]:
    for model in MODELS:
        await ensure_consumer(bus, group_consumer("chat", model, cap=400, members=2))
    return GROUPS


@pytest.fixture
async def taker(nats_url: str, groups: list[tuple[str, int]]) -> AsyncIterator[Taker]:
    """On a connection of its own, as a worker is."""
    async with await Bus.connect(nats_url, name="worker") as connection:
        yield Taker(connection)


async def test_a_standing_pull_gets_the_next_item_and_an_ack_frees_its_place(bus: Bus, taker: Taker) -> None:
    round_ = await taker.arm(GROUPS, 2, 10)
    assert round_.armed == dict(GROUPS)
    seq = await put(bus, "b", "t1")
    (item,) = await round_.items()
    assert (item.data, item.subject, item.deliveries, item.stream_seq) == (b"t1", "task.q.chat.b.any.t1.1", 1, seq)
    assert await in_flight(bus, GROUPS[1][0]) == 1
    assert await item.in_progress()
    assert await item.ack()
    assert await in_flight(bus, GROUPS[1][0]) == 0
    assert await round_.close() == []


async def test_what_waits_is_taken_strictly_in_the_order_of_the_groups(bus: Bus, taker: Taker) -> None:
    for model in "cba":
        for number in (1, 2):
            await put(bus, model, f"{model}{number}")
    assert tasks(await taker.take(GROUPS, 3)) == ["a1", "a2", "b1"]
    assert tasks(await taker.take(GROUPS, 3)) == ["b2", "c1", "c2"]


async def test_four_hundred_tasks_are_each_taken_once_and_never_more_than_k_at_a_time(bus: Bus, taker: Taker) -> None:
    seed = random.randrange(2**32)
    dice = random.Random(seed)
    got: list[str] = []

    async def produce() -> None:
        for number in range(400):
            await put(bus, dice.choice(MODELS), f"t{number}")

    producing = asyncio.create_task(produce())
    async with asyncio.timeout(PATIENCE_S):
        while len(got) < 400:
            k = dice.randint(1, 4)
            items = await taker.take(GROUPS, k, 1.0, sweep=dice.random() < 0.5)
            assert len(items) <= k, f"seed {seed}"
            got += tasks(items)
            for item in items:
                assert await item.ack()
    await producing
    assert sorted(got) == sorted(f"t{number}" for number in range(400)), f"seed {seed}"


async def test_two_rounds_at_once_are_each_bounded_by_their_own_k(bus: Bus, taker: Taker) -> None:
    first, second = await taker.arm(GROUPS, 1, 10), await taker.arm(GROUPS, 2, 10)
    for number in range(5):
        await put(bus, MODELS[number % 3], f"t{number}")
    got = [await first.items(), await second.items() + await second.items()]
    assert [len(items) for items in got] == [1, 2]
    assert await first.close() == await second.close() == []
    rest = await taker.take(GROUPS, 5)
    assert sorted(tasks([*got[0], *got[1], *rest])) == [f"t{number}" for number in range(5)]


async def test_a_missing_group_harms_nothing_and_is_not_called_armed(bus: Bus, taker: Taker) -> None:
    missing = (group_durable("chat", "nobody-has-it"), 0)
    for sweep in (False, True):
        round_ = await taker.arm([missing, GROUPS[0], missing], 1, 10, sweep=sweep)
        assert round_.armed == {GROUPS[0][0]: 0}
        await put(bus, "a", f"t-{sweep}")
        (item,) = await round_.items()
        assert item.data == f"t-{sweep}".encode()
        assert await item.ack()
        await round_.close()


async def test_a_group_deleted_under_a_standing_pull_ends_the_round_and_is_left_alone(bus: Bus, taker: Taker) -> None:
    round_ = await taker.arm(GROUPS, 1, 10)
    await delete_consumer(bus, GROUPS[0][0])
    assert await round_.items() == []
    await round_.close()
    after = await taker.arm(GROUPS, 1, 10)
    assert after.armed == dict(GROUPS[1:])
    await put(bus, "b", "t1")
    assert tasks(await after.items()) == ["t1"]


async def test_a_round_with_nothing_to_take_is_over_when_its_time_is(taker: Taker) -> None:
    assert await taker.take(GROUPS, 2, 0.2) == []


async def test_a_round_whose_groups_are_all_missing_is_over_but_not_at_once(taker: Taker) -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    assert await taker.take([("g~chat~x", 0)], 1, 10) == []
    assert loop.time() - started > 0.5, "a worker that re-arms would spin"


async def test_items_that_arrive_while_a_round_is_closed_are_not_lost(bus: Bus, taker: Taker) -> None:
    got: list[str] = []
    for number in range(100):
        round_ = await taker.arm(GROUPS, 1, 10, sweep=False)
        items, _ = await asyncio.gather(round_.close(), put(bus, MODELS[number % 3], f"t{number}"))
        got += tasks(items)
        for item in items:
            await item.ack()
    while rest := await taker.take(GROUPS, 10, 0.2):
        got += tasks(rest)
        for item in rest:
            await item.ack()
    assert sorted(got) == sorted(f"t{number}" for number in range(100))
    assert [await in_flight(bus, durable) for durable, _ in GROUPS] == [0, 0, 0]


async def test_the_better_priority_gets_the_item_whoever_asked_first(nats_url: str, bus: Bus, taker: Taker) -> None:
    async with await Bus.connect(nats_url, name="slow") as connection:
        slow = Taker(connection)
        for number in range(10):
            late = await slow.arm([(GROUPS[0][0], 5)], 1, 10)
            early = await taker.arm([(GROUPS[0][0], 0)], 1, 10)
            await put(bus, "a", f"t{number}")
            (item,) = await early.items()
            await item.ack()
            await early.close()
            assert await late.close() == []


async def test_the_server_knows_of_the_pulls_when_it_is_told_that_they_are_armed(bus: Bus, taker: Taker) -> None:
    said: list[dict[str, int]] = []

    async def credit(armed: dict[str, int]) -> None:
        said.append(armed)
        await put(bus, "c", "t1")

    assert tasks(await taker.take(GROUPS, 1, on_armed=credit)) == ["t1"]
    assert said == [dict(GROUPS)]


async def test_what_is_sent_behind_unfenced_pulls_finds_them_standing(bus: Bus, taker: Taker) -> None:
    """The server reads a connection in order: an item that is put right behind the pulls comes to them at once."""
    for number in range(20):
        round_ = await taker.arm(GROUPS, 1, 10, sweep=False, fence=False)
        await put(bus, "c", f"t{number}")
        assert tasks(await round_.items()) == [f"t{number}"]
        assert await round_.close() == []


async def test_unfenced_pulls_are_proven_later_and_refused_ones_named_by_then(taker: Taker) -> None:
    round_ = await taker.arm([("nobody", 0), GROUPS[0]], 1, 10, sweep=False, fence=False)
    await taker.prove(round_)
    assert round_.armed == {GROUPS[0][0]: 0}
    round_.interrupt()
    assert await round_.items() == [] == await round_.close()


async def test_a_lane_takes_pinned_work_and_nobody_elses(bus: Bus, taker: Taker) -> None:
    await ensure_consumer(bus, lane_consumer("w1", slots=2))
    await put(bus, "a", "pinned", lane="w1")
    await put(bus, "a", "shared")
    await put(bus, "a", "other", lane="w2")
    assert tasks(await taker.take([(lane_durable("w1"), 0)], 3)) == ["pinned"]


async def test_a_terminated_item_never_comes_back(bus: Bus, taker: Taker) -> None:
    await put(bus, "a", "t1")
    (item,) = await taker.take(GROUPS, 1)
    assert await item.term("another event holds the claim")
    assert await taker.take(GROUPS, 1, 0.2) == []
    assert await in_flight(bus, GROUPS[0][0]) == 0


async def test_a_lost_connection_ends_every_round_and_no_item_goes_to_a_dead_one(
    natsd: EmbeddedServer, bus: Bus, taker: Taker
) -> None:
    rounds = [await taker.arm(GROUPS, 1, 30) for _ in range(3)]
    await natsd.kill()
    assert [await round_.items() for round_ in rounds] == [[], [], []]
    assert [round_.armed for round_ in rounds] == [{}, {}, {}]
    with pytest.raises(BusError, match="while disconnected"):
        await taker.arm(GROUPS, 1, 10)
    await natsd.start()
    assert await taker.bus.wait_connected(PATIENCE_S)
    assert await bus.wait_connected(PATIENCE_S)
    assert [await round_.close() for round_ in rounds] == [[], [], []]
    round_ = await eventually(lambda: _armed(taker))
    assert round_ is not None
    await put(bus, "a", "t1")
    assert tasks(await round_.items()) == ["t1"]
    assert await taker.take(GROUPS, 1, 0.2) == []


async def _armed(taker: Taker) -> Round | None:
    """A server that has just started may not have recovered its consumers yet."""
    round_ = await taker.arm(GROUPS, 1, 30)
    if round_.armed == dict(GROUPS):
        return round_
    await round_.close()
    return None


async def test_an_item_in_hand_is_acked_after_a_server_kill_or_comes_again(
    natsd: EmbeddedServer, bus: Bus, taker: Taker
) -> None:
    """The killed server may have forgotten a delivery of the last 0.2 s. Then nothing answers the ack, which says so, and
    the item is as new: its claim's id decides that it never runs twice."""
    await put(bus, "a", "t1")
    (item,) = await taker.take(GROUPS, 1)
    await natsd.kill()
    acking = asyncio.create_task(item.ack())
    await natsd.start()
    if await acking:
        assert await in_flight(bus, GROUPS[0][0]) == 0
        return
    (again,) = await taker.take(GROUPS, 1)
    assert (again.subject, again.stream_seq) == (item.subject, item.stream_seq)
    assert await again.ack()


async def test_a_closed_taker_hands_over_what_its_rounds_held(bus: Bus, taker: Taker) -> None:
    round_ = await taker.arm(GROUPS, 2, 10)
    await put(bus, "a", "t1")
    await eventually(lambda: in_flight(bus, GROUPS[0][0]))
    assert tasks(await taker.close()) == ["t1"]
    assert await round_.items() == []


async def test_room_for_nothing_is_refused(taker: Taker) -> None:
    with pytest.raises(ValueError, match="at least one"):
        await taker.arm(GROUPS, 0, 1)
