from __future__ import annotations

import msgspec
import pytest

from services.router.http.reading import BadRequest, check_messages, parse_object, typed


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    n: int = 0


class Outer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    inner: Inner = Inner()
    many: list[Inner] = []


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({}, "name"),
        ({"name": 1}, "name"),
        ({"name": "a", "nome": 1}, "nome"),
        ({"name": "a", "inner": {"n": "x"}}, "inner.n"),
        ({"name": "a", "inner": {"m": 1}}, "inner.m"),
        ({"name": "a", "many": [{}, {"n": None}]}, "many[1].n"),
    ],
)
def test_every_fault_is_named_by_its_path(values: dict[str, object], field: str) -> None:
    with pytest.raises(BadRequest) as caught:
        typed(values, Outer)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")


def test_a_prefix_stands_before_the_path() -> None:
    with pytest.raises(BadRequest) as caught:
        typed({}, Outer, prefix="body")
    assert caught.value.field == "body.name"


def test_a_query_may_write_numbers_as_texts() -> None:
    assert typed({"n": "7"}, Inner, strict=False) == Inner(7)


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert typed({"n": 8192.0}, Inner) == Inner(8192)
    assert typed({"name": "a", "inner": {"n": -2.0}}, Outer) == Outer("a", Inner(-2))


def test_another_number_is_none() -> None:
    with pytest.raises(BadRequest, match=r"^inner\.n: .*got `float`"):
        typed({"name": "a", "inner": {"n": 1.5}}, Outer)


@pytest.mark.parametrize("data", [b"", b"  ", b"null", b"[]", b"{", b'{"a":"\\ud800"}', b'{"a":1e999}', b"[" * 50_000])
def test_what_is_no_json_object_is_a_bad_request(data: bytes) -> None:
    with pytest.raises(BadRequest, match="body"):
        parse_object(data)


def test_messages_come_out_as_they_went_in() -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "new", "x": 1}], "name": "n"}]
    assert check_messages(messages) == tuple(messages)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"content": [{"type": "image_url", "image_url": {}}]}, "messages[0].content[0].image_url.url"),
        ({"content": [{"type": "image_url", "image_url": ["data:x"]}]}, "messages[0].content[0].image_url.url"),
        ({"content": None, "tool_calls": {"a": 1}}, "messages[0].tool_calls"),
        ({"content": None, "tool_calls": [{"id": "c"}]}, "messages[0].tool_calls[0].function.name"),
        ({"content": None, "tool_calls": [{"function": {"name": None}}]}, "messages[0].tool_calls[0].function.name"),
    ],
)
def test_what_a_backend_would_stumble_over_is_refused_before(message: dict[str, object], field: str) -> None:
    with pytest.raises(BadRequest) as refused:
        check_messages([{"role": "assistant", **message}])
    assert refused.value.field == field


def test_an_image_that_stands_without_its_object_gets_it() -> None:
    bare = {"type": "image_url", "image_url": "data:image/png;base64,AAAA"}
    (message,) = check_messages([{"role": "user", "content": [bare]}])
    assert message["content"] == [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    assert bare["image_url"] == "data:image/png;base64,AAAA"


def test_what_windows_writes_before_a_text_is_no_fault() -> None:
    assert parse_object(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    with pytest.raises(BadRequest, match="empty"):
        parse_object(b"\xef\xbb\xbf")
