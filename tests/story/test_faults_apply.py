"""The faults that ``make story-faults`` puts back can still be put back: it takes minutes, this takes none."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.source import ROOT

FAULTS = Path(__file__).parent / "faults"
TOLD = ("s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10")


@pytest.fixture(scope="module")
def put_back() -> Any:
    spec = importlib.util.spec_from_file_location("put_back", FAULTS / "put_back.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_story_has_a_fault_and_an_end_to_end_test(put_back: Any) -> None:
    assert tuple(put_back.stories()) == TOLD
    assert [story for story in TOLD if len(put_back.end_to_end(story)) == 0] == []


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("story", TOLD)
def test_the_fault_can_still_be_put_back(put_back: Any, story: str) -> None:
    checked = put_back.apply(put_back.stories()[story], ROOT, "--check")
    assert checked.returncode == 0, f"{checked.stderr}\nWrite {story}.patch anew: {put_back.__doc__}"
