from __future__ import annotations

import json
import re

import pytest

from schemas import codec, documentation, events
from support.builders import build
from support.source import ROOT

HOME = ROOT / documentation.HOME


@pytest.mark.parametrize("name", sorted(documentation.files()))
def test_what_is_published_is_what_the_structs_say(name: str) -> None:
    assert (HOME / name).read_text(encoding="utf-8") == documentation.files()[name], "run: make docs"


def test_nothing_else_is_published() -> None:
    assert {path.name for path in HOME.iterdir()} == set(documentation.files())


def test_every_event_says_who_says_it() -> None:
    assert set(documentation.SAYINGS) == set(events.EVENT_TYPES)


@pytest.mark.parametrize("kind", events.EVENT_TYPES)
def test_a_stored_event_has_only_fields_that_are_described(kind: type[events.Event]) -> None:
    described = documentation.schema(kind)
    stored = json.loads(codec.encode(build(kind)))
    assert set(stored) == set(described["properties"])
    assert set(described["required"]) <= set(stored)
    assert described["properties"]["type"] == {"const": stored["type"]}


@pytest.mark.parametrize("kind", events.EVENT_TYPES)
def test_every_part_that_is_referred_to_is_in_the_same_file(kind: type[events.Event]) -> None:
    text = json.dumps(documentation.schema(kind))
    assert set(re.findall(r'"#/\$defs/(\w+)"', text)) == set(documentation.schema(kind).get("$defs", {}))
