"""services.runtime.feed on a real nats-server: every message, in order, once, whatever happens in between."""

from __future__ import annotations

import asyncio
import signal

import pytest

from schemas.errors import BusError
from services.runtime.bus import Bus
from services.runtime.feed import Feed
from services.runtime.server import EmbeddedServer
from services.runtime.stored import StoredMessage
from support.eventually import PATIENCE_S, eventually
from support.natsd import freeze


async def publish(bus: Bus, first: int, last: int, subject: str = "ev.task.started.w1") -> None:
    for start in range(first, last + 1, 1_000):
        numbers = range(start, min(last + 1, start + 1_000))
        await asyncio.gather(*(bus.publish_stored(subject, b"%d" % i, f"m{i}") for i in numbers))


class Heard:
    """A handler that keeps what it was given."""

    def __init__(self) -> None:
        self.messages: list[StoredMessage] = []
        self.batches: list[int] = []

    async def one(self, message: StoredMessage) -> None:
        self.messages.append(message)

    async def batch(self, messages: list[StoredMessage]) -> None:
        self.messages += messages
        self.batches.append(len(messages))

    @property
    def sequences(self) -> list[int]:
        return [message.seq for message in self.messages]


async def test_the_past_comes_in_order_and_then_the_present(bus: Bus) -> None:
    await publish(bus, 1, 3_000)
    heard = Heard()
    async with Feed(bus, "EVENTS", heard.one) as feed:
        await feed.caught_up.wait()
        assert heard.sequences == list(range(1, 3_001))
        await publish(bus, 3_001, 3_010)
        await eventually(lambda: feed.position == 3_010)
    assert heard.sequences == list(range(1, 3_011))
    assert [int(message.data) for message in heard.messages] == list(range(1, 3_011))


async def test_a_message_says_where_it_lies_as_a_direct_get_does(bus: Bus) -> None:
    await publish(bus, 1, 1)
    heard = Heard()
    async with Feed(bus, "EVENTS", heard.one) as feed:
        await feed.caught_up.wait()
    direct = await bus.stored("EVENTS", 1)
    assert direct is not None
    assert heard.messages[0][:3] == direct[:3]
    assert heard.messages[0].at_us == direct.at_us
    assert heard.messages[0].headers is not None
    assert heard.messages[0].headers["Nats-Msg-Id"] == "m1"


async def test_batches_grow_with_the_backlog_and_a_lingering_feed_fills_them(bus: Bus) -> None:
    await publish(bus, 1, 4_000)
    heard = Heard()
    async with Feed(bus, "EVENTS", on_batch=heard.batch, batch=1_000, linger_s=5.0) as feed:
        await eventually(lambda: feed.position >= 3_000)
        assert min(heard.batches) >= 1_000
        assert max(heard.batches) <= 2_000
    assert heard.sequences == list(range(1, feed.position + 1))


async def test_a_feed_starts_where_it_was_left_and_hears_only_its_subjects(bus: Bus) -> None:
    for i in range(1, 11):
        await bus.publish_stored("ev.task.started.w1" if i % 2 else "ev.task.completed.w1", b"", f"m{i}")
    heard = Heard()
    async with Feed(bus, "EVENTS", heard.one, start_seq=4, filters=["ev.task.started.*"]) as feed:
        await feed.caught_up.wait()
    assert heard.sequences == [5, 7, 9]


async def test_an_empty_stream_is_caught_up_at_once(bus: Bus) -> None:
    async with Feed(bus, "EVENTS", Heard().one) as feed:
        async with asyncio.timeout(PATIENCE_S):
            await feed.caught_up.wait()
        assert feed.position == 0


async def test_a_bucket_comes_with_its_present_contents_and_then_its_changes(bus: Bus) -> None:
    for i in range(3):
        await bus.kv_put("stats", "mdw.a.b.c", b"%d" % i)
    await bus.kv_put("stats", "mdw.a.b.d", b"x")
    heard = Heard()
    async with Feed(bus, "KV_stats", heard.one, last_per_subject=True) as feed:
        await feed.caught_up.wait()
        assert [(m.subject, m.data) for m in heard.messages] == [
            ("$KV.stats.mdw.a.b.c", b"2"),
            ("$KV.stats.mdw.a.b.d", b"x"),
        ]
        await bus.kv_put("stats", "mdw.a.b.c", b"3")
        await eventually(lambda: heard.messages[-1].data == b"3")


async def test_nothing_is_lost_or_repeated_over_server_kills(natsd: EmbeddedServer, bus: Bus) -> None:
    await publish(bus, 1, 20_000)
    heard = Heard()
    async with Feed(bus, "EVENTS", on_batch=heard.batch) as feed:
        for part in (1, 2):
            await eventually(lambda part=part: feed.position >= part * 2_000)  # type: ignore[misc]
            await natsd.kill()
            await natsd.start()
        await eventually(lambda: feed.position == 20_000)
        await natsd.kill()
        await natsd.start()
        await publish(bus, 20_001, 20_001)
        await eventually(lambda: feed.position == 20_001)
        assert feed.resets >= 1
    assert heard.sequences == list(range(1, 20_002))


async def test_a_consumer_that_somebody_deletes_is_made_again(bus: Bus) -> None:
    heard = Heard()
    async with Feed(bus, "EVENTS", heard.one) as feed:
        await feed.caught_up.wait()
        for name in (await bus.api("CONSUMER.NAMES.EVENTS"))["consumers"]:
            await bus.api(f"CONSUMER.DELETE.EVENTS.{name}")
        await publish(bus, 1, 1)
        await eventually(lambda: heard.sequences == [1])
        assert feed.resets == 1


async def test_a_feed_leaves_no_consumer_behind(bus: Bus) -> None:
    async with Feed(bus, "EVENTS", Heard().one) as feed:
        await feed.caught_up.wait()
    await eventually(lambda: _no_consumers(bus))


async def _no_consumers(bus: Bus) -> bool:
    return not (await bus.api("CONSUMER.NAMES.EVENTS"))["consumers"]


async def test_a_feed_reads_at_most_two_pulls_ahead_of_a_slow_handler(bus: Bus) -> None:
    await publish(bus, 1, 2_000)
    go = asyncio.Event()
    heard = Heard()

    async def slow(messages: list[StoredMessage]) -> None:
        await go.wait()
        await heard.batch(messages)

    async with Feed(bus, "EVENTS", on_batch=slow, batch=100) as feed:
        await eventually(lambda: feed._received >= 200)
        await bus.fence()
        assert feed._received <= 400  # two pulls in the handler's hands, two more behind it
        go.set()
        await eventually(lambda: feed.position == 2_000)
    assert max(heard.batches) <= 200
    assert heard.sequences == list(range(1, 2_001))


async def test_a_handlers_error_ends_the_feed_and_its_position_stays(bus: Bus) -> None:
    await publish(bus, 1, 10)

    async def picky(message: StoredMessage) -> None:
        if message.seq == 5:
            raise ZeroDivisionError("five")

    async with Feed(bus, "EVENTS", picky) as feed:
        with pytest.raises(ZeroDivisionError):
            await feed.wait()
        assert feed.position == 4


async def test_who_waits_for_the_past_hears_of_a_handler_that_cannot_take_it(bus: Bus) -> None:
    await publish(bus, 1, 3)

    async def broken(message: StoredMessage) -> None:
        raise ValueError(f"cannot fold {message.seq}")

    async with Feed(bus, "EVENTS", broken) as feed:
        with pytest.raises(ValueError, match="cannot fold 1"):
            await asyncio.wait_for(feed.catch_up(), PATIENCE_S)


async def test_a_position_of_another_log_is_refused(bus: Bus) -> None:
    await publish(bus, 1, 3)
    with pytest.raises(BusError, match=r"ends at 3, before the position 7.*not the log"):
        await Feed(bus, "EVENTS", Heard().one, start_seq=8).start()


async def test_a_missing_stream_is_named(bus: Bus) -> None:
    with pytest.raises(BusError, match=r"STREAM\.INFO\.NOWHERE"):
        await Feed(bus, "NOWHERE", Heard().one).start()


async def test_a_frozen_server_is_waited_for_and_nothing_is_lost_or_repeated(natsd: EmbeddedServer, bus: Bus) -> None:
    """Longer than the feed's patience with a silent server: it makes another consumer, and passes the old one's rest over."""
    await publish(bus, 1, 100)
    heard = Heard()
    async with Feed(bus, "EVENTS", heard.one) as feed:
        await feed.caught_up.wait()
        await freeze(natsd.process)
        publishing = asyncio.create_task(publish(bus, 101, 200))
        await eventually(lambda: feed.resets)
        assert natsd.process is not None
        natsd.process.send_signal(signal.SIGCONT)
        await publishing
        await eventually(lambda: feed.position == 200)
    assert heard.sequences == list(range(1, 201))
