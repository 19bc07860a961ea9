"""services.runtime.provision on a real server: all is there after the first time, and nothing changes after that."""

from __future__ import annotations

import asyncio

from schemas.streams import STREAMS, group_consumer, lane_consumer
from services.runtime.bus import Bus
from services.runtime.provision import delete_consumer, differing, ensure_consumer, provision


async def test_the_first_time_creates_and_the_second_changes_nothing(empty_bus: Bus) -> None:
    assert await provision(empty_bus) == [f"created stream {config['name']}" for config in STREAMS]
    assert await provision(empty_bus) == []


async def test_the_server_keeps_every_setting_as_it_was_asked(bus: Bus) -> None:
    for config in STREAMS:
        present = (await bus.api(f"STREAM.INFO.{config['name']}"))["config"]
        assert differing(config, present) == {}
    for consumer in (group_consumer("chat", "qwen3:8b", cap=4, members=2), lane_consumer("w1", slots=2)):
        await ensure_consumer(bus, consumer)
        present = (await bus.api(f"CONSUMER.INFO.TASKS.{consumer['name']}"))["config"]
        assert differing(consumer, present) == {}


async def test_a_changed_setting_is_put_right_and_named(bus: Bus) -> None:
    day_ns = 24 * 3_600 * 10**9
    assert await provision(bus, keep_s=86_400) == [f"changed stream TASKS: max_age {7 * day_ns} -> {day_ns}"]
    assert await provision(bus) == [f"changed stream TASKS: max_age {day_ns} -> {7 * day_ns}"]


async def test_a_setting_that_is_not_ours_stays(bus: Bus) -> None:
    present = (await bus.api("STREAM.INFO.TASKS"))["config"]
    await bus.api("STREAM.UPDATE.TASKS", {**present, "metadata": {"owner": "me"}})
    await provision(bus, keep_s=86_400)
    assert (await bus.api("STREAM.INFO.TASKS"))["config"]["metadata"]["owner"] == "me"


async def test_a_time_shorter_than_the_duplicate_window_is_not_given_to_the_server(bus: Bus) -> None:
    await provision(bus, keep_s=0)
    assert (await bus.api("STREAM.INFO.TASKS"))["config"]["max_age"] == 2 * 3_600 * 10**9


async def test_a_consumer_is_made_once_and_changed_where_it_must(bus: Bus) -> None:
    assert await ensure_consumer(bus, group_consumer("chat", "m", cap=1, members=1)) is True
    assert await ensure_consumer(bus, group_consumer("chat", "m", cap=1, members=1)) is False
    assert await ensure_consumer(bus, group_consumer("chat", "m", cap=1, members=2)) is True
    info = await bus.api("CONSUMER.INFO.TASKS.g~chat~m")
    assert (info["config"]["max_ack_pending"], info["config"]["priority_policy"]) == (3, "prioritized")


async def test_two_routers_that_make_the_same_consumer_at_once_both_succeed(nats_url: str, bus: Bus) -> None:
    async with await Bus.connect(nats_url, name="other") as other:
        await asyncio.gather(
            ensure_consumer(bus, group_consumer("chat", "m", cap=1, members=1)),
            ensure_consumer(other, group_consumer("chat", "m", cap=9, members=1)),
        )
    assert (await bus.api("CONSUMER.INFO.TASKS.g~chat~m"))["config"]["max_ack_pending"] in (2, 10)


async def test_a_consumer_that_is_gone_can_be_deleted_again(bus: Bus) -> None:
    await ensure_consumer(bus, lane_consumer("w1", slots=1))
    assert await delete_consumer(bus, "l~w1") is True
    assert await delete_consumer(bus, "l~w1") is False
