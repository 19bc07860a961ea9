"""What was stored once is read for ever, with the same meaning."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from schemas import codec, events
from support.golden import HOME, current_file, digest, golden_files, recorded
from support.source import ROOT


def label(path: Path) -> str:
    return str(path.relative_to(HOME))


@pytest.mark.parametrize("path", golden_files(), ids=label)
def test_an_old_event_still_means_what_it_meant(path: Path) -> None:
    event = codec.decode(path.read_bytes())
    assert isinstance(event, events.Event)
    assert events.type_of(event) == path.stem.partition("+")[0]
    assert codec.decode(codec.encode(event)) == event


@pytest.mark.parametrize("path", golden_files(), ids=label)
def test_no_field_of_an_old_event_was_renamed_or_dropped(path: Path) -> None:
    """Only an upcaster may rewrite a field, and then the version has changed."""
    stored = json.loads(path.read_bytes())
    if stored["v"] == codec.CURRENT[stored["type"]]:
        event = codec.decode(path.read_bytes())
        assert isinstance(event, events.Event)
        assert missing(stored, json.loads(codec.encode(event))) == []


def missing(old: Any, new: Any, where: str = "") -> list[str]:
    """Where ``new`` lacks or contradicts what ``old`` says; new fields are welcome."""
    match old, new:
        case dict(), dict():
            return [lost for key in old for lost in missing(old[key], new.get(key, "no such field"), f"{where}.{key}")]
        case list(), list() if len(old) == len(new):
            return [lost for at, each in enumerate(old) for lost in missing(each, new[at], f"{where}[{at}]")]
        case _:
            return [] if old == new else [f"{where}: {old!r} became {new!r}"]


@pytest.mark.parametrize("kind", events.EVENT_TYPES)
def test_every_type_in_its_present_version_has_a_golden_file(kind: type[events.Event]) -> None:
    assert current_file(kind).exists(), "run: PYTHONPATH=tests python -m support.golden"


def test_no_golden_file_was_changed_removed_or_left_unrecorded() -> None:
    assert {label(path): digest(path) for path in golden_files()} == recorded()


def test_no_commit_ever_changed_a_golden_file_or_a_recorded_hash() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no history here: this is not a git checkout")
    folder = str(HOME.relative_to(ROOT))
    listed = git("log", "--diff-filter=MDRT", "--name-status", "--format=", "--", f"{folder}/v*/*.json")
    assert listed == ""
    hashes = git("log", "-p", "--unified=0", "--format=", "--", f"{folder}/SHA256SUMS").splitlines()
    assert [line for line in hashes if line.startswith("-") and not line.startswith("---")] == []


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout
