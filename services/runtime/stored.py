"""A message as JetStream stored it.

Answers "what lies where, since when?", whichever way it was read: a feed, a pull or a direct get. Pure; never talks to a server.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

Headers = Mapping[str, str]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class StoredMessage(NamedTuple):
    """``seq`` in its stream; ``at_us`` is the server's time of storage in microseconds since 1970."""

    seq: int
    subject: str
    data: bytes
    headers: Headers | None
    at_us: int


class AckReply(NamedTuple):
    """What the reply subject of a message from a consumer says."""

    deliveries: int
    stream_seq: int
    consumer_seq: int
    at_us: int
    pending: int


def parse_ack_reply(reply: str) -> AckReply:
    """``$JS.ACK.<stream>.<consumer>.<deliveries>.<seq>.<consumer seq>.<ns>.<pending>``; the longer form of leaf nodes and
    domains has two more tokens in front (and one behind). Raises ValueError for anything else."""
    parts = reply.split(".")
    first = 4 if len(parts) == 9 else 6
    if len(parts) < 9 or parts[1] != "ACK":
        raise ValueError(f"{reply!r} is not the reply subject of a consumer's message")
    deliveries, stream_seq, consumer_seq, at_ns, pending = map(int, parts[first : first + 5])
    return AckReply(deliveries, stream_seq, consumer_seq, at_ns // 1000, pending)


def parse_direct(headers: Headers, data: bytes) -> StoredMessage:
    """The answer to a direct get, whose headers say where the message lies."""
    return StoredMessage(
        int(headers["Nats-Sequence"]),
        headers["Nats-Subject"],
        data,
        headers,
        unix_us(headers["Nats-Time-Stamp"]),
    )


def unix_us(stamp: str) -> int:
    """``2026-01-02T03:04:05.123456789Z`` in microseconds since 1970; the server drops trailing zeros and sends up to 9 digits."""
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    seconds = (datetime.fromisoformat(whole).replace(tzinfo=UTC) - _EPOCH) // (_EPOCH.resolution * 1_000_000)
    return seconds * 1_000_000 + int(fraction.ljust(6, "0")[:6])
