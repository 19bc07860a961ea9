from __future__ import annotations

from services.cli.sse import EventParser, ServerEvent


def events(text: str) -> list[ServerEvent]:
    parser = EventParser()
    return [event for line in text.split("\n") if (event := parser.line(line)) is not None]


def test_an_event_is_complete_at_its_blank_line() -> None:
    assert events('event: token\ndata: {"text": "a: b"}\n\nevent: end') == [ServerEvent("token", '{"text": "a: b"}')]


def test_keep_alives_and_unknown_fields_are_no_events() -> None:
    assert events(": keep-alive\n\nid: 7\nretry: 3\n\n") == []


def test_several_data_lines_are_one_text_and_a_nameless_event_is_a_message() -> None:
    assert events("data: one\ndata:two\n\n") == [ServerEvent("message", "one\ntwo")]
