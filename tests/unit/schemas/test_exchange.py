from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from schemas import codec, events
from schemas.errors import InvalidEvent
from schemas.exchange import ID_HEADER, SEQUENCE_HEADER, TIME_HEADER, Exported, export_line, origin, parse_line
from support.builders import build

ODD = [
    b"",
    b"null",
    b"{}",
    b'{"a":1}\n',
    b' {"a":1}',
    b"\xff\x00",
    b'{"a":\n1}',
    b"[" * 2_000,
    '{"a":"\u2028é"}'.encode(),
]


def there_and_back(data: bytes) -> Exported:
    line = export_line(7, 1_000_000, "ev.x.y.z", data, {ID_HEADER: "t.end"})
    assert line.count(b"\n") == 1
    return parse_line(line)


@pytest.mark.parametrize("kind", events.EVENT_TYPES)
def test_an_event_is_readable_in_its_line_and_comes_back_byte_for_byte(kind: type[events.Event]) -> None:
    data = codec.encode(build(kind))
    assert data in export_line(7, 1, "ev.x.y.z", data, None)
    assert there_and_back(data).data == data


@pytest.mark.parametrize("data", ODD)
def test_what_is_no_event_travels_as_well(data: bytes) -> None:
    assert there_and_back(data).data == data


@given(st.binary(max_size=60))
def test_any_bytes_travel(data: bytes) -> None:
    assert there_and_back(data).data == data


def test_an_import_says_what_the_first_stream_said() -> None:
    exported = there_and_back(b"{}")
    assert (exported.subject, exported.msg_id) == ("ev.x.y.z", "t.end")
    assert origin(99, 5_000_000, exported.headers()) == (7, 1_000_000)


def test_an_event_that_was_imported_once_keeps_its_first_time() -> None:
    again = parse_line(export_line(99, 5_000_000, "ev.x.y.z", b"{}", there_and_back(b"{}").headers()))
    assert (again.seq, again.at_us) == (7, 1_000_000)


def test_an_event_that_was_never_moved_is_where_it_is() -> None:
    assert origin(99, 5_000_000, None) == (99, 5_000_000)
    assert origin(99, 5_000_000, {ID_HEADER: "t"}) == (99, 5_000_000)


def test_impossible_headers_are_refused() -> None:
    with pytest.raises(InvalidEvent, match="message 99"):
        origin(99, 5, {TIME_HEADER: "yesterday", SEQUENCE_HEADER: "7"})


@pytest.mark.parametrize("line", [b"", b"{}", b'{"seq":1}', b"\xff", b"[" * 5_000])
def test_what_no_export_has_written_is_refused_with_its_beginning(line: bytes) -> None:
    with pytest.raises(InvalidEvent, match="not a line of an export"):
        parse_line(line)
