"""services.runtime.stored: where a message lies, whichever way it was read."""

from __future__ import annotations

import pytest

from services.runtime.stored import AckReply, parse_ack_reply, parse_direct, unix_us

AT_NS = 1_795_973_347_262_025_663


def test_the_reply_subject_says_where_a_message_lies() -> None:
    reply = f"$JS.ACK.TASKS.g~chat~m.2.17.9.{AT_NS}.3"
    assert parse_ack_reply(reply) == AckReply(2, 17, 9, AT_NS // 1000, 3)


def test_the_longer_form_of_a_domain_is_understood() -> None:
    reply = f"$JS.ACK.hub.ACCHASH.TASKS.g~chat~m.2.17.9.{AT_NS}.3.token"
    assert parse_ack_reply(reply) == AckReply(2, 17, 9, AT_NS // 1000, 3)


@pytest.mark.parametrize("reply", ["", "_INBOX.x.1", "$JS.API.a.b.c.d.e.f.g"])
def test_another_reply_subject_is_refused(reply: str) -> None:
    with pytest.raises(ValueError, match="not the reply subject"):
        parse_ack_reply(reply)


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("2026-11-29T17:29:07.262025663Z", AT_NS // 1000),
        ("2026-11-29T17:29:07.5Z", 1_795_973_347_500_000),
        ("2026-11-29T17:29:07Z", 1_795_973_347_000_000),
        ("1970-01-01T00:00:00.000001Z", 1),
    ],
)
def test_a_server_timestamp_keeps_its_microseconds(stamp: str, expected: int) -> None:
    assert unix_us(stamp) == expected


def test_a_direct_get_says_where_the_message_lies() -> None:
    headers = {
        "Nats-Stream": "EVENTS",
        "Nats-Subject": "ev.task.started.w1",
        "Nats-Sequence": "42",
        "Nats-Time-Stamp": "2026-11-29T17:29:07.5Z",
    }
    found = parse_direct(headers, b"{}")
    assert (found.seq, found.subject, found.at_us) == (42, "ev.task.started.w1", 1_795_973_347_500_000)
