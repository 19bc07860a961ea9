"""Where output goes: results to stdout, remarks to stderr, JSON when asked.

Answers "what does a pipe get?". With ``--json`` stdout carries JSON and nothing else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec
from rich.console import Console, RenderableType
from rich.text import Text

from services.cli.exits import CommandFailed

PIPE_COLUMNS = 120
"""A file or a pipe has no width of its own; 80 would break the tables."""


def console(**options: Any) -> Console:
    """A console as wide as the terminal, or COLUMNS, or PIPE_COLUMNS."""
    stream = sys.stderr if options.get("stderr") else sys.stdout
    width = None if stream.isatty() or "COLUMNS" in os.environ else PIPE_COLUMNS
    return Console(highlight=False, width=width, **options)


out = console()
err = console(stderr=True)


def emit(value: Any, render: Callable[[Any], RenderableType], *, as_json: bool) -> None:
    """One result, as JSON (indented on a terminal, one line in a pipe) or as people read it."""
    if as_json:
        emit_json(value)
    else:
        show(render(value))


def show(result: RenderableType, console: Console | None = None) -> None:
    """Tables are filled up with blanks to the screen's width; a pipe or a file gets none at the ends of its lines."""
    console = console or out
    if console.is_terminal or console.record:
        console.print(result)
        return
    with console.capture() as captured:
        console.print(result)
    console.file.write("".join(f"{line.rstrip(' ')}\n" for line in captured.get().splitlines()))
    console.file.flush()


def emit_json(value: Any) -> None:
    text = msgspec.json.encode(value)
    if sys.stdout.isatty():
        text = msgspec.json.format(text, indent=2)
    sys.stdout.write(text.decode() + "\n")
    sys.stdout.flush()


def complain(error: Exception, *, as_json: bool = False) -> None:
    """One line of what happened, one of what to do, on stderr; as JSON where the command was asked for that."""
    hint = error.hint if isinstance(error, CommandFailed) else None
    if as_json:
        sys.stderr.write(msgspec.json.encode({"error": {"message": str(error), "hint": hint}}).decode() + "\n")
        return
    err.print(Text.assemble(("headrace: ", "bold red"), str(error)), soft_wrap=True)
    if hint:
        err.print(Text(f"  {hint}", style="dim"), soft_wrap=True)
