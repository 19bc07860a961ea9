"""services.runtime.bus on a real nats-server: what is stored is stored once, whatever happens in between."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from functools import partial

import pytest

from schemas.errors import BusError
from services.runtime.bus import WRONG_LAST_SEQUENCE, Bus
from services.runtime.provision import provision
from services.runtime.server import EmbeddedServer
from support.eventually import PATIENCE_S, eventually
from support.natsd import freeze


async def count(bus: Bus, stream: str) -> int:
    return int((await bus.api(f"STREAM.INFO.{stream}"))["state"]["messages"])


async def test_the_same_id_is_stored_once_and_the_ack_names_the_winner(bus: Bus) -> None:
    first = await bus.publish_stored("task.in.me.t1", b"one", "t1")
    second = await bus.publish_stored("task.in.me.t1", b"two", "t1")
    assert (first.duplicate, second.duplicate, first.seq) == (False, True, second.seq)
    winner = await bus.stored("TASKS", second.seq)
    assert winner is not None
    assert (winner.data, winner.subject, winner.headers and winner.headers["Nats-Msg-Id"]) == (
        b"one",
        "task.in.me.t1",
        "t1",
    )


async def test_many_publishes_in_flight_keep_their_order_within_a_stream(bus: Bus) -> None:
    acks = await asyncio.gather(*(bus.publish_stored("task.in.me.t", b"%d" % i, f"t{i}") for i in range(500)))
    assert [ack.seq for ack in acks] == list(range(1, 501))


@pytest.mark.parametrize("way", ["publish_stored", "storing"])
async def test_publishes_in_flight_over_a_server_kill_are_each_stored_once(
    natsd: EmbeddedServer, bus: Bus, way: str
) -> None:
    store = getattr(bus, way)

    async def publish_all() -> None:
        for start in range(0, 2_000, 100):
            await asyncio.gather(*(store("task.in.me.t", b"%d" % i, f"t{i}") for i in range(start, start + 100)))

    publishing = asyncio.create_task(publish_all())
    for _ in range(2):
        seen = await count(bus, "TASKS")
        await eventually(partial(_more_than, bus, seen))
        await natsd.kill()
        await natsd.start()
    await publishing
    assert await count(bus, "TASKS") == 2_000
    stored = [await bus.stored("TASKS", seq) for seq in range(1, 2_001)]
    assert set(Counter(message.data for message in stored if message).values()) == {1}


async def test_what_is_being_stored_leaves_at_once_in_its_order_and_what_is_refused_says_so(bus: Bus) -> None:
    small, large = bus.storing("task.in.me.t", b"one", "t1"), bus.storing("task.in.me.t", bytes(100_000), "t2")
    again = bus.storing("task.in.me.t", b"two", "t1")
    assert (await small, await again, (await large).duplicate) == ((1, False), (1, True), False)
    with pytest.raises(BusError, match="nothing was sent"):
        await bus.storing("task.in.me.t", bytes(bus.nc.max_payload + 1), "t3")


async def test_what_nobody_waits_for_any_more_is_stored_all_the_same(bus: Bus) -> None:
    bus.storing("task.in.me.t", b"one", "t1").cancel()
    assert (await bus.publish_stored("task.in.me.t", b"two", "t2")).seq == 2


async def test_an_error_that_costs_the_connection_does_not_cost_the_service(bus: Bus) -> None:
    lost: list[str] = []
    bus.on_disconnect(lambda: lost.append("lost"))
    await bus.nc.publish("x" * 10_000, b"")  # the server: maximum control line exceeded
    await eventually(lambda: lost)
    assert (await bus.publish_stored("task.in.me.t", b"", "t")).seq == 1


async def _more_than(bus: Bus, seen: int) -> bool:
    return await count(bus, "TASKS") > seen


async def test_a_publish_waits_out_a_frozen_server(natsd: EmbeddedServer, bus: Bus) -> None:
    assert natsd.process is not None
    await freeze(natsd.process)
    publishing = asyncio.create_task(bus.publish_stored("task.in.me.t", b"", "t"))
    await asyncio.wait([publishing], timeout=0.3)
    assert not publishing.done()
    natsd.process.send_signal(signal.SIGCONT)
    assert (await publishing).seq == 1


async def test_a_refusal_comes_at_once_and_names_its_subject(bus: Bus) -> None:
    too_much = bus.nc.max_payload + 1
    with pytest.raises(BusError, match=rf"task\.in\.me\.t \({too_much} bytes\).*nothing was sent"):
        await bus.publish_stored("task.in.me.t", bytes(too_much), "t")
    with pytest.raises(BusError, match="nobody listens there"):
        await bus.publish_stored("elsewhere", b"", "t", deadline_s=1.0)


async def test_a_subject_that_a_user_may_not_publish_to_is_refused_at_once(natsd: EmbeddedServer, bus: Bus) -> None:
    """By our own server's users; a container has none."""
    with pytest.raises(BusError, match="may not publish there"):
        await bus.api("STREAM.PURGE.EVENTS")


async def test_without_a_server_the_publisher_hears_of_it_at_its_deadline(natsd: EmbeddedServer, bus: Bus) -> None:
    await natsd.stop()
    with pytest.raises(BusError, match="tried for 0.2 s"):
        await bus.publish_stored("task.in.me.t", b"", "t", deadline_s=0.2)
    assert await bus.send("tok.w.t", b"") is False


async def test_no_server_at_all_is_an_error_without_the_password() -> None:
    with pytest.raises(BusError) as refused:
        await Bus.connect("nats://me:secret@127.0.0.1:1", name="x", timeout_s=0.3)
    assert "127.0.0.1:1" in str(refused.value)
    assert "secret" not in str(refused.value)


async def test_what_is_not_there_is_none(bus: Bus) -> None:
    assert await bus.stored("EVENTS", 1) is None
    assert await bus.last_for("TASKS", "task.in.me.*") is None
    assert await bus.kv_get("stats", "a.b.c.d") is None
    assert await bus.last_seq("EVENTS") == 0


async def test_a_deleted_message_is_gone_and_deleting_it_again_says_so(bus: Bus) -> None:
    ack = await bus.publish_stored("task.q.chat.m.any.t.1", b"", "t.1")
    assert await bus.delete_message("TASKS", ack.seq) is True
    assert await bus.delete_message("TASKS", ack.seq) is False
    assert await bus.delete_message("TASKS", 99) is False
    assert await bus.stored("TASKS", ack.seq) is None


async def test_a_fact_cannot_be_deleted(bus: Bus) -> None:
    ack = await bus.publish_stored("ev.task.started.w1", b"{}", "t.1.start")
    with pytest.raises(BusError, match="not permitted"):
        await bus.delete_message("EVENTS", ack.seq)


async def test_the_slower_of_two_updates_of_a_key_is_refused(bus: Bus) -> None:
    revision = await bus.kv_put("router", "dispatcher", b"a")
    assert await bus.kv_update("router", "dispatcher", b"b", revision) > revision
    with pytest.raises(BusError) as refused:
        await bus.kv_update("router", "dispatcher", b"c", revision)
    assert refused.value.code == WRONG_LAST_SEQUENCE
    kept = await bus.kv_get("router", "dispatcher")
    assert kept is not None
    assert kept.data == b"b"
    assert await bus.kv_update("router", "new", b"x", 0) > 0


async def test_a_listener_hears_in_order_and_survives_its_own_error(nats_url: str, bus: Bus) -> None:
    heard: list[bytes] = []

    def listen(message: object) -> None:
        data = message.data  # type: ignore[attr-defined]
        if data == b"1":
            raise RuntimeError("a listener's error")
        heard.append(data)

    listening = await bus.listen("tok.*.t", listen)
    async with await Bus.connect(nats_url, name="other") as other:
        await bus.fence()
        for i in range(4):
            await other.send("tok.w.t", b"%d" % i)
        await eventually(lambda: heard == [b"0", b"2", b"3"])
        await listening.stop()
        await bus.fence()
        await other.send("tok.w.t", b"4")
        await other.fence()
    await bus.fence()
    assert heard == [b"0", b"2", b"3"]


async def test_only_what_was_stored_is_noted(bus: Bus) -> None:
    noted: list[tuple[str, str]] = []
    listening = await bus.listen("note.ev.>", lambda m: noted.append((m.subject, (m.headers or {})["Nats-Sequence"])))
    await bus.publish_stored("ev.task.started.w1", b"{}", "t.1.start")
    await bus.publish_stored("ev.task.started.w2", b"{}", "t.1.start")
    await bus.publish_stored("ev.task.started.w1", b"{}", "t.2.start")
    await eventually(lambda: len(noted) == 2)
    await listening.stop()
    assert noted == [("note.ev.task.started.w1", "1"), ("note.ev.task.started.w1", "2")]


async def test_a_service_answers_and_silence_is_an_error(bus: Bus) -> None:
    listening = await bus.listen("rpc.router.ping", lambda m: m.respond(b"pong"))
    assert await bus.request("rpc.router.ping", b"") == b"pong"
    await listening.stop()
    with pytest.raises(BusError, match="nobody listens"):
        await bus.request("rpc.router.nobody", b"", timeout_s=1)


async def test_hooks_hear_of_the_cut_and_of_the_return(natsd: EmbeddedServer, bus: Bus) -> None:
    said: list[str] = []
    bus.on_disconnect(lambda: said.append("cut"))
    bus.on_reconnect(lambda: said.append("back"))
    generation = bus.generation
    await natsd.kill()
    await eventually(lambda: said == ["cut"])
    assert await bus.fence() is False
    await natsd.start()
    assert await bus.wait_connected(PATIENCE_S)
    await eventually(lambda: said == ["cut", "back"])
    assert bus.generation == generation + 1
    assert await provision(bus) == []


async def test_a_closed_bus_leaves_nobody_waiting(natsd: EmbeddedServer) -> None:
    bus = await Bus.connect(natsd.url, name="closing")
    await provision(bus)
    assert natsd.process is not None
    await freeze(natsd.process)
    publishing = asyncio.create_task(bus.publish_stored("task.in.me.t", b"", "t"))
    await asyncio.wait([publishing], timeout=0.05)
    closing = asyncio.create_task(bus.close())
    with pytest.raises(BusError):
        await publishing
    natsd.process.send_signal(signal.SIGCONT)
    await closing


async def test_a_planned_restart_of_the_server_is_survived_like_a_kill(natsd: EmbeddedServer, bus: Bus) -> None:
    for number in range(2):
        await natsd.stop()
        publishing = asyncio.create_task(bus.publish_stored("task.in.me.t", b"", f"t{number}"))
        await natsd.start()
        assert (await publishing).seq == number + 1
