"""services.runtime.line on a real server: the same messages as nats-py's, in order with its own, and none after their end."""

from __future__ import annotations

import pytest
from nats.errors import BadSubjectError

from services.runtime.bus import Bus
from services.runtime.line import SMALL
from services.runtime.server import EmbeddedServer
from services.runtime.wire import Arrived
from support.eventually import PATIENCE_S, eventually


async def test_what_is_said_arrives_whole_and_in_order_with_what_nats_py_sends(bus: Bus) -> None:
    heard: list[Arrived] = []
    bus.line.hear("tok.w.*", heard.append, 100)
    large = b"x" * (SMALL + 1)
    await bus.line.say("tok.w.1", b"one", "some.reply", {"Nats-Msg-Id": "t.1", "Other": "a b"})
    await bus.nc.publish("tok.w.2", b"")
    await bus.line.say("tok.w.3", large)
    await bus.line.say("tok.w.4", b"\r\n")
    assert await bus.fence()
    assert [one.subject for one in heard] == [b"tok.w.1", b"tok.w.2", b"tok.w.3", b"tok.w.4"]
    assert [one.data for one in heard] == [b"one", b"", large, b"\r\n"]
    assert (heard[0].reply, dict(heard[0].headers or {})) == (b"some.reply", {"Nats-Msg-Id": "t.1", "Other": "a b"})


async def test_a_subject_or_header_that_would_break_the_line_does_not(bus: Bus) -> None:
    heard: list[Arrived] = []
    bus.line.hear("tok.w.*", heard.append, 100)
    for subject in ("tok.w.1\r\nPUB tok.w.2 0\r\n", "tok.w 1", "", "tok.w.\t"):
        with pytest.raises(BadSubjectError):
            await bus.line.say(subject, b"")
    await bus.line.say("tok.w.3", b"", headers={"Nats-Msg-Id": "a\r\nOther: b"})
    assert await bus.fence()
    assert [one.subject for one in heard] == [b"tok.w.3"]
    assert "Other" not in (heard[0].headers or {})


async def test_the_server_counts_the_limit_and_a_hushed_one_hears_what_was_sent_before(bus: Bus) -> None:
    two: list[Arrived] = []
    hushed: list[Arrived] = []
    bus.line.hear("tok.w.*", two.append, 2)
    sid = bus.line.hear("tok.w.*", hushed.append, 100)
    for number in range(3):
        await bus.line.say(f"tok.w.{number}", b"")
    bus.line.hush(sid)
    await bus.line.say("tok.w.3", b"")
    assert await bus.fence()
    assert (len(two), len(hushed)) == (2, 3)


async def test_an_error_of_one_hearer_is_not_the_next_ones(bus: Bus) -> None:
    heard: list[Arrived] = []

    def fails(_: Arrived) -> None:
        raise RuntimeError("a hearer's error")

    bus.line.hear("tok.w.*", fails, 100)
    bus.line.hear("tok.w.*", heard.append, 100)
    await bus.line.say("tok.w.1", b"")
    assert await bus.fence()
    assert len(heard) == 1


async def test_a_listener_at_once_hears_again_after_a_reconnection_and_no_more_once_stopped(
    natsd: EmbeddedServer, nats_url: str, bus: Bus
) -> None:
    heard: list[str] = []
    listening = await bus.listen("tok.>", lambda message: heard.append(message.subject), at_once=True)
    await natsd.kill()
    await natsd.start()
    assert await bus.wait_connected(PATIENCE_S)
    async with await Bus.connect(nats_url, name="other") as other:
        assert await bus.fence()
        await other.send("tok.w.1", b"")
        await eventually(lambda: heard == ["tok.w.1"])
        await listening.stop()
        assert await bus.fence()
        await other.send("tok.w.2", b"")
        assert await other.fence() and await bus.fence()
    assert heard == ["tok.w.1"]
