"""Where files may lie and how they may be called."""

from __future__ import annotations

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from support.source import OURS, ROOT, calls, python_files, tree

EMPTY_WORDS = {"util", "utils", "common", "helper", "helpers", "misc", "manager", "base", "core", "shared"}
TEXT = {".py", ".toml", ".md", ".yaml", ".yml", ".json", ".conf", ".txt", ".example", ".sql", ".html", ""}


def committed_files() -> list[str]:
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        return []
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_tests_are_no_packages() -> None:
    assert [path for path in python_files("tests") if path.endswith("__init__.py")] == []


def test_every_folder_of_ours_is_a_regular_package() -> None:
    folders = {(ROOT / path).parent for path in python_files(*OURS)}
    assert sorted(str(folder) for folder in folders if not (folder / "__init__.py").exists()) == []


def test_the_nats_folder_is_flat_and_holds_only_data() -> None:
    inside = list((ROOT / "nats").iterdir())
    assert [path.name for path in inside if path.is_dir() or path.suffix in {".py", ".pyi", ".so"}] == []


@pytest.mark.parametrize("path", python_files(*OURS, "tests"))
def test_a_file_is_named_for_what_it_holds(path: str) -> None:
    assert EMPTY_WORDS.isdisjoint(Path(path).stem.removeprefix("test_").split("_"))


@pytest.mark.parametrize("path", python_files(*OURS))
def test_a_module_says_which_question_it_answers(path: str) -> None:
    assert ast.get_docstring(tree(path)) or (ROOT / path).stat().st_size == 0


@pytest.mark.parametrize("path", python_files("tests/unit"))
def test_a_unit_test_mirrors_a_file(path: str) -> None:
    """``test_slots.py`` mirrors ``slots.py``, ``test_slots_under_load.py`` too, or a folder ``slots``."""
    part, name = Path(path).parts[2], Path(path).stem.removeprefix("test_")
    home = ROOT / part if part in OURS else ROOT / "services" / part
    names = {found.stem for found in home.rglob("*") if found.is_dir() or found.suffix == ".py"}
    assert name == "conftest" or any(f"{name}_".startswith(f"{known}_") for known in names), (
        f"{home.name}/ has no {name}.py"
    )


@pytest.mark.parametrize("path", python_files("tests"))
def test_only_eventually_sleeps(path: str) -> None:
    """``asyncio.sleep(0)`` gives way and does not wait, so it may stand."""
    if path == "tests/support/eventually.py":
        return
    sleeps = [line for line, name, call in calls(path) if name == "sleep" and not _is_zero(call)]
    assert sleeps == [], f"{path} sleeps in these lines; wait with support.eventually instead"


def test_no_committed_text_names_a_machine_of_ours() -> None:
    homes = ("/" + "work/", "/" + "root/")
    named = [
        f"{name}: {home}"
        for name in committed_files()
        if Path(name).suffix in TEXT
        for home in homes
        if home in (ROOT / name).read_text(encoding="utf-8", errors="replace")
    ]
    assert named == []


def _is_zero(call: ast.Call) -> bool:
    return len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
