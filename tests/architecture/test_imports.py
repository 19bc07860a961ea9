"""Which names mean what, and who may import whom. The traps were each reproduced; see STYLE.md, "Python traps".

That services never import each other is import-linter's part (pyproject.toml, `make check`).
"""

from __future__ import annotations

import importlib.metadata
import sys
from fnmatch import fnmatch
from pathlib import Path

import nats
import pytest

from support.source import OURS, ROOT, calls, imports, python_files

CORE = (
    "schemas/*.py",
    "services/router/dispatch/*.py",
    "services/router/policy/*.py",
    *(
        f"services/router/{name}.py"
        for name in "comparison decision_words domain_words domains explain fleet language nearest view".split()
    ),
    *(f"services/worker/{name}.py" for name in "attempts freshness outcome priority timings".split()),
    "services/worker/backends/names.py",
    *(f"services/projector/{name}.py" for name in "batch cells_sql heartbeats rows tables views".split()),
    "simulation/check.py",
)
"""Decide, fold, plan, score: time, randomness and ids are arguments. ``*`` reaches into sub-folders too."""

IMPURE = frozenset(
    "asyncio concurrent duckdb fastapi httpx logging multiprocessing nats os psutil pynvml random rich secrets"
    " shutil signal socket sqlite3 starlette structlog subprocess tempfile threading time typer urllib uuid uvicorn".split()
)

REFUSED_NATS_PY = {
    "fetch": "loses tasks: its own limit counts a 503 that the server's does not; use services.runtime.take",
    "pull_subscribe": "cannot name priority groups; use services.runtime.take",
    "key_value": "its watcher stops at a reconnect; use Bus.kv_* and Feed",
    "watchall": "stops at a reconnect; follow the bucket's stream with Feed",
}


def core_files() -> list[str]:
    return [path for path in python_files(*OURS) if any(fnmatch(path, pattern) for pattern in CORE)]


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


@pytest.mark.parametrize("pattern", CORE)
def test_every_core_pattern_still_finds_a_file(pattern: str) -> None:
    assert any(fnmatch(path, pattern) for path in python_files(*OURS))


@pytest.mark.parametrize("path", core_files())
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
