"""services.runtime.wire: the same bytes mean the same messages, however the network cuts them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st
from nats.errors import ProtocolError

from services.runtime.wire import MAX_LINE_BYTES, Arrived, BatchParser, DirectParser, RawHeaders

HEADER = b"NATS/1.0\r\nNats-Msg-Id: t1.end\r\nOther:x\r\n\r\n"
STREAM = (
    b"MSG ev.a 1 $JS.ACK.x 5\r\nhello\r\n"
    b"PING\r\n"
    b"MSG ev.b 1 0\r\n\r\n"
    + b"HMSG ev.c 1 $JS.ACK.y %d %d\r\n%s" % (len(HEADER), len(HEADER) + 4, HEADER)
    + b"\r\n\r\n\r\nPONG\r\n+OK\r\n"
    + b"HMSG inbox 1 %d %d\r\nNATS/1.0 408 Request Timeout\r\n\r\n\r\n" % (32, 32)
    + b"-ERR 'Permissions Violation for Publish to \"a.B\"'\r\n"
    + b'INFO {"max_payload":5}\r\n'
)
EXPECTED = [
    Arrived(b"ev.a", b"$JS.ACK.x", b"hello", None, b"1"),
    Arrived(b"ev.b", b"", b"", None, b"1"),
    Arrived(b"ev.c", b"$JS.ACK.y", b"\r\n\r\n", HEADER, b"1"),
    Arrived(b"inbox", b"", b"", b"NATS/1.0 408 Request Timeout\r\n\r\n", b"1"),
]


class Recorder:
    """Stands where nats-py's client does; writes down what the parser asks of it."""

    def __init__(self) -> None:
        self.control: list[Any] = []

    async def _process_ping(self) -> None:
        self.control.append("ping")

    async def _process_pong(self) -> None:
        self.control.append("pong")

    async def _process_err(self, text: str) -> None:
        self.control.append(text)

    async def _process_info(self, info: dict[str, Any]) -> None:
        self.control.append(info)


async def parsed(*pieces: bytes) -> tuple[list[Arrived], list[Any]]:
    recorder = Recorder()
    found: list[Arrived] = []
    parser = BatchParser(recorder, found.extend)  # type: ignore[arg-type]
    for piece in pieces:
        await parser.parse(piece)
    return found, recorder.control


async def test_messages_headers_and_control_lines_are_told_apart() -> None:
    found, control = await parsed(STREAM)
    assert found == EXPECTED
    assert control == ["ping", "pong", "'permissions violation for publish to \"a.b\"'", {"max_payload": 5}]


@given(st.lists(st.integers(0, len(STREAM)), max_size=6))
async def test_the_cuts_of_the_network_change_nothing(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:stop] for start, stop in pairwise(edges)]
    assert await parsed(*pieces) == await parsed(STREAM)


async def test_direct_messages_skip_nats_py_and_all_others_reach_it() -> None:
    class Client(Recorder):
        async def _process_msg(self, *message: Any) -> None:
            self.control.append(message)

    client, direct = Client(), list[Arrived]()
    parser = DirectParser(client, {b"1": direct.append})  # type: ignore[arg-type]
    await parser.parse(b"MSG a 1 1\r\nx\r\nMSG b 2 r 1\r\ny\r\nMSG a 1 1\r\nz\r\n")
    assert [one.data for one in direct] == [b"x", b"z"]
    assert client.control == [(2, b"b", b"r", b"y", None)]


async def test_what_is_not_nats_is_refused() -> None:
    with pytest.raises(ProtocolError):
        await parsed(b"HTTP/1.1 400 Bad Request\r\n")
    with pytest.raises(ProtocolError):
        await parsed(b"x" * (MAX_LINE_BYTES + 1))


async def test_a_half_message_is_forgotten_after_a_reset() -> None:
    recorder = Recorder()
    found: list[Arrived] = []
    parser = BatchParser(recorder, found.extend)  # type: ignore[arg-type]
    await parser.parse(b"MSG ev.a 1 5\r\nhe")
    parser.reset()
    await parser.parse(b"MSG ev.b 1 2\r\nok\r\n")
    assert [message.data for message in found] == [b"ok"]


def test_headers_are_found_by_their_exact_name() -> None:
    headers = RawHeaders(HEADER)
    assert headers["Nats-Msg-Id"] == "t1.end"
    assert dict(headers) == {"Nats-Msg-Id": "t1.end", "Other": "x"}
    assert headers.get("Msg-Id") is None
    assert headers.status is None


def test_a_status_is_told_from_headers() -> None:
    assert RawHeaders(b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 7\r\n\r\n").status == "408"
    bare = RawHeaders(b"NATS/1.0 503\r\n\r\n")
    assert (bare.status, bare.get("Status"), bare.get("Description")) == ("503", "503", None)
    assert RawHeaders(b"NATS/1.0 409 Message Size\r\n\r\n").get("Description") == "Message Size"
