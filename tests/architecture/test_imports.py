"""Which names mean what, and who may import whom. The traps were each reproduced; see STYLE.md, "Python traps".

That services never import each other is import-linter's part; who is pure is said there too (pyproject.toml, `make check`).
"""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from pathlib import Path

import nats
import pytest

from support.source import OURS, ROOT, calls, imports, python_files, tree

CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
(PURE,) = (contract for contract in CONTRACTS if contract["type"] == "forbidden")
CORE: list[str] = PURE["source_modules"]
"""Decide, fold, plan, score: modules, or packages with all that is in them."""
IMPURE = frozenset(PURE["forbidden_modules"])

REFUSED_NATS_PY = {
    "fetch": "loses tasks: its own limit counts a 503 that the server's does not; use services.runtime.take",
    "pull_subscribe": "cannot name priority groups; use services.runtime.take",
    "key_value": "its watcher stops at a reconnect; use Bus.kv_* and Feed",
    "watchall": "stops at a reconnect; follow the bucket's stream with Feed",
}


def files_of(module: str) -> list[str]:
    """The module's file, or all files of the package."""
    folder = module.replace(".", "/")
    return [path for path in python_files(*OURS) if path == f"{folder}.py" or path.startswith(f"{folder}/")]


def says_pure(path: str) -> bool:
    """In its docstring, as a word of its own: "Pure" begins what it promises."""
    return re.search(r"\bPure[.,;:]", ast.get_docstring(tree(path)) or "") is not None


def module_file(module: str) -> str | None:
    """The file of one of our modules, or None for somebody else's."""
    base = Path(*module.split("."))
    for candidate in (base.with_suffix(".py"), base / "__init__.py"):
        if (ROOT / candidate).exists():
            return str(candidate)
    return None


def reachable(path: str) -> set[str]:
    """The file and all files of ours that importing it runs, packages' ``__init__`` included."""
    seen: set[str] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        parts = [module.split(".") for module in imports(file)]
        modules = {".".join(words[: length + 1]) for words in parts for length in range(len(words))}
        waiting += [found for module in modules if (found := module_file(module))]
    return seen


def test_import_nats_is_the_client_and_not_the_data_folder() -> None:
    assert nats.__file__ is not None
    assert ROOT / "nats" not in Path(nats.__file__).parents
    assert hasattr(nats, "connect")


def test_no_other_distribution_claims_our_package_names() -> None:
    owners = importlib.metadata.packages_distributions()
    for package in OURS:
        assert set(owners.get(package, [])) <= {"headrace"}, f"{package} is also installed by {owners[package]}"


@pytest.mark.parametrize("path", [path for path in python_files(*OURS) if says_pure(path)])
def test_a_file_that_calls_itself_pure_is_held_to_it(path: str) -> None:
    assert any(path in files_of(module) for module in CORE), f"add it to the contract in pyproject.toml: {path}"


@pytest.mark.parametrize("path", [path for module in CORE for path in files_of(module)])
def test_a_core_file_reaches_no_clock_no_chance_and_no_io(path: str) -> None:
    """Neither itself nor through any file of ours that it imports."""
    found = {
        f"{file}: {module}" for file in reachable(path) for module in imports(file) if module.split(".")[0] in IMPURE
    }
    assert sorted(found) == []


@pytest.mark.parametrize("path", python_files("schemas"))
def test_schemas_need_only_msgspec_and_the_standard_library(path: str) -> None:
    allowed = {*sys.stdlib_module_names, "msgspec", "schemas"}
    assert sorted({module for module in imports(path) if module.split(".")[0] not in allowed}) == []


@pytest.mark.parametrize("path", python_files("services", "simulation"))
def test_nobody_uses_the_parts_of_nats_py_that_lose_messages(path: str) -> None:
    if not any(module.split(".")[0] == "nats" for module in imports(path)):
        return
    found = [
        f"{path}:{line} {name}: {REFUSED_NATS_PY[name]}" for line, name, _ in calls(path) if name in REFUSED_NATS_PY
    ]
    assert found == []
