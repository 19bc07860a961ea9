"""An attempt counts as sharing by how long it shared, not by how it began."""

from __future__ import annotations

from services.worker.streams import Streams


def test_one_attempt_alone_is_one() -> None:
    streams = Streams[str]()
    streams.begin("a", 5.0)
    assert streams.end("a", 9.0) == 1


def test_the_first_of_a_burst_ran_beside_the_others() -> None:
    streams = Streams[int]()
    for number in range(8):
        streams.begin(number, number * 0.01)
    assert [streams.end(number, 10.0 + number * 0.01) for number in range(8)] == [8] * 8


def test_a_short_meeting_hardly_counts() -> None:
    streams = Streams[str]()
    streams.begin("long", 0.0)
    streams.begin("short", 9.0)
    assert (streams.end("short", 10.0), streams.end("long", 10.0)) == (2, 1)


def test_an_attempt_of_no_time_counts_those_beside_it() -> None:
    streams = Streams[str]()
    streams.begin("a", 1.0)
    streams.begin("b", 2.0)
    assert streams.end("b", 2.0) == 2
