"""Our own source text, read once, for the architecture tests: which files there are, and what stands in them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = ("schemas", "services", "simulation")


@cache
def python_files(*folders: str) -> tuple[str, ...]:
    """Paths relative to the repository, sorted; folders that do not exist hold no files."""
    found = (path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return tuple(sorted(str(path.relative_to(ROOT)) for path in found))


@cache
def tree(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=path)


def imports(path: str) -> Iterator[str]:
    """Every module that the file imports, in full, wherever in the file it does; TYPE_CHECKING imports cost nothing and
    are left out."""
    for node in _walk_running(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)  # the name may be a module itself


def calls(path: str) -> Iterator[tuple[int, str, ast.Call]]:
    """(line, the called name's last part, the call)."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                yield node.lineno, node.func.attr, node
            elif isinstance(node.func, ast.Name):
                yield node.lineno, node.func.id, node


def functions(path: str) -> Iterator[tuple[str, int]]:
    """(name with its classes, lines), decorators not counted, docstring counted."""

    def visit(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield prefix + child.name, (child.end_lineno or child.lineno) - child.lineno + 1
                yield from visit(child, f"{prefix}{child.name}.")
            elif isinstance(child, ast.ClassDef):
                yield from visit(child, f"{prefix}{child.name}.")
            else:
                yield from visit(child, prefix)

    yield from visit(tree(path), "")


def _walk_running(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _walk_running(child)
