from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schemas import codec, events
from schemas.codec import UnknownEvent
from schemas.errors import InvalidEvent
from support.builders import build

CANCELLED = {"type": "task.cancelled", "id": "e1", "v": 1, "at": 1.5, "by": "r", "task": "t", "epoch": 1}


def changed(**fields: Any) -> bytes:
    return msgspec.json.encode({**CANCELLED, **fields})


@pytest.mark.parametrize("kind", events.EVENT_TYPES)
def test_every_event_comes_back_as_it_was_said(kind: type[events.Event]) -> None:
    event = build(kind)
    assert codec.decode(codec.encode(event)) == event


def test_a_field_of_a_newer_program_is_skipped() -> None:
    assert codec.decode(changed(novelty=[1, 2])) == codec.decode(changed())


def test_an_unknown_type_is_kept_whole() -> None:
    raw = changed(type="planet.discovered")
    assert codec.decode(raw) == UnknownEvent(type="planet.discovered", v=1, id="e1", raw=raw)


@pytest.mark.parametrize("extra", [{}, {"task": {"now": "an object"}}])
def test_a_newer_version_is_kept_whole_even_if_it_would_decode(extra: dict[str, Any]) -> None:
    raw = changed(v=2, **extra)
    assert codec.decode(raw) == UnknownEvent(type="task.cancelled", v=2, id="e1", raw=raw)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"\xff\xfe",
        b'{"type":"task.cancelled"}',
        b'{"type":3,"id":"e1"}',
        changed(id=None),
        changed()[:-1],
        changed() + b"x",
        changed(id="e1").replace(b"e1", b"\xff"),
        changed(v="1"),
        b'{"type":"x","id":"e","y":' + b"[" * 9999,
    ],
    ids=lambda data: repr(data[:30]),
)
def test_what_is_no_event_says_so_and_shows_its_first_bytes(data: bytes) -> None:
    with pytest.raises(InvalidEvent, match="first bytes"):
        codec.decode(data)


@pytest.mark.parametrize("fields", [{"epoch": "one"}, {"task": None}, {"at": None}, {"reason": 5}])
def test_impossible_contents_name_the_event_and_the_field(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidEvent, match=rf"task.cancelled e1: .*{next(iter(fields))}"):
        codec.decode(changed(**fields))


def test_depth_does_not_stop_a_reader() -> None:
    with pytest.raises(InvalidEvent):
        codec.decode(b'{"type":"task.cancelled","id":"e1","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, "high"])
def test_what_could_not_be_read_back_is_never_stored(value: Any) -> None:
    event = events.QualityJudged(id="e1", at=1.0, by="b", model="m", domain="d", source="judge", value=value)
    with pytest.raises(InvalidEvent, match=r"QualityJudged 'e1' cannot be stored"):
        codec.encode(event)


def test_half_a_surrogate_pair_is_never_stored() -> None:
    with pytest.raises(InvalidEvent, match="cannot be stored"):
        codec.encode(events.TaskCancelled(id="e1", at=1.0, by="b", task="t", epoch=1, reason="\udc80"))


def test_an_old_version_climbs_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Version 1 said ``why`` in one word, version 2 named the task ``job``; neither ever existed."""

    def second(fields: dict[str, Any]) -> dict[str, Any]:
        return {**{key: value for key, value in fields.items() if key != "why"}, "reason": f"was {fields['why']}"}

    def third(fields: dict[str, Any]) -> dict[str, Any]:
        return {**fields, "task": fields["job"]}

    monkeypatch.setitem(codec.CURRENT, "task.cancelled", 3)
    monkeypatch.setitem(codec.UPCASTERS, ("task.cancelled", 1), second)
    monkeypatch.setitem(codec.UPCASTERS, ("task.cancelled", 2), third)
    old = {key: value for key, value in CANCELLED.items() if key != "task"} | {"why": "boredom", "job": "t7"}
    event = codec.decode(msgspec.json.encode(old))
    assert event == events.TaskCancelled(id="e1", v=3, at=1.5, by="r", task="t7", epoch=1, reason="was boredom")


def test_a_missing_step_names_the_type_and_the_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(codec.CURRENT, "task.cancelled", 2)
    with pytest.raises(InvalidEvent, match=r"task.cancelled e1: no upcaster from version 1"):
        codec.decode(changed())


def test_a_step_that_makes_nonsense_is_an_invalid_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(codec.CURRENT, "task.cancelled", 2)
    monkeypatch.setitem(codec.UPCASTERS, ("task.cancelled", 1), lambda fields: {**fields, "epoch": "x"})
    with pytest.raises(InvalidEvent, match=r"task.cancelled e1: .*epoch"):
        codec.decode(changed())


@pytest.mark.parametrize("version", [0, -1])
def test_versions_begin_at_one(version: int) -> None:
    with pytest.raises(InvalidEvent, match="no upcaster"):
        codec.decode(changed(v=version))


def test_every_older_version_has_its_step() -> None:
    wanted = {(kind, version) for kind, current in codec.CURRENT.items() for version in range(1, current)}
    assert set(codec.UPCASTERS) == wanted
