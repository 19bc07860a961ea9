"""headrace.toml.example is true and complete: what it shows as default is the default, and every key is in it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from services.runtime.settings import Section, Settings, load
from support.source import ROOT

EXAMPLE = ROOT / "headrace.toml.example"


def with_examples() -> str:
    """The file with its commented keys switched on."""
    return re.sub(r'(?m)^# (?=[\w".-]+ = )', "", EXAMPLE.read_text(encoding="utf-8"))


def keys(section: type, prefix: str = "") -> list[str]:
    """Every dotted key that a person may set."""
    found: list[str] = []
    for name, kind in get_type_hints(section).items():
        nested = isinstance(kind, type) and issubclass(kind, Section)
        found += keys(kind, f"{prefix}{name}.") if nested else [prefix + name]
    return found


def value(tree: dict[str, Any], key: str) -> Any:
    for part in key.split("."):
        tree = tree[part]
    return tree


def test_the_example_as_it_stands_changes_nothing() -> None:
    assert load(EXAMPLE, {}) == Settings()


def test_its_commented_keys_are_valid_too(tmp_path: Path) -> None:
    file = tmp_path / "headrace.toml"
    file.write_text(with_examples(), encoding="utf-8")
    assert load(file, {}) != Settings()


@pytest.mark.parametrize("key", keys(Settings))
def test_every_setting_is_in_it(key: str) -> None:
    assert value(tomllib.loads(with_examples()), key) is not None


def test_compose_sets_only_settings_that_exist() -> None:
    variables = set(re.findall(r"(?m)^ +(HEADRACE_[A-Z_]+): ", (ROOT / "compose.yaml").read_text(encoding="utf-8")))
    known = {f"HEADRACE_{key.upper().replace('.', '_')}" for key in keys(Settings)}
    assert variables
    assert variables <= known
