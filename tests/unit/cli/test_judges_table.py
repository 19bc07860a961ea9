"""The judges' records, as a person reads them."""

from __future__ import annotations

import io
from typing import Any

import msgspec
from rich.console import Console

from schemas.bias import Judge, Records, share
from services.cli.judges_table import judges, share as words

SOUND = Judge(
    model="phi4:14b",
    digest="sha256:5f1c9e2b7a00",
    standing="sound",
    pairs=40,
    counted=38,
    shorter=share(8, 8),
    longer=share(7, 8),
    turned=share(5, 40),
    malformed=share(0, 112),
    lengthy=share(31, 40),
    flags=("length",),
    why="it was right in 15 of 16 known pairs",
)
FAILED = Judge(model="tiny", standing="unsound", shorter=share(0, 3), longer=share(3, 3), why="it found none")


def shown(*records: Judge, width: int = 200) -> str:
    body: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(Records(judges=records)))
    out = io.StringIO()
    Console(file=out, width=width).print(judges(body))
    return out.getvalue()


def test_each_share_stands_with_its_number_and_its_interval() -> None:
    text = shown(SOUND)
    assert "15 of 16" in text
    assert "38 of 40" in text
    assert "12 % (5–26) of 40" in text
    assert "unknown" in text  # nobody said what people thought
    assert "phi4:14b 5f1c9e2b" in text


def test_a_flag_and_a_failed_test_say_what_follows_from_them() -> None:
    text = shown(SOUND, FAILED)
    assert "likes longer answers: as much is taken off as that alone explains" in text
    assert "tiny: failed its test: counts nothing; it found none" in text


def test_a_narrow_terminal_loses_nothing() -> None:
    assert "12 % (5–26) of 40" in shown(SOUND, width=60)


def test_nothing_judged_yet_says_what_to_do() -> None:
    assert "compare --judge" in shown()


def test_a_share_of_nothing_is_unknown() -> None:
    assert words({"k": 0, "n": 0, "share": None, "low": 0.0, "high": 1.0}) == "unknown"
