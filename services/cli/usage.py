"""A command line that cannot be: what was typed, why not, and what to type instead, as every other error of ours.

Answers "what did I type wrong?". Only words; the argument parser finds the fault.
"""

from __future__ import annotations

from typing import Any

import typer

from services.cli.exits import CommandFailed, Exit

Mistyped: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
"""All that the parser raises. Its name is public in no version of typer."""


def mistyped(error: Exception) -> CommandFailed:
    """What to complain of. Its message is empty where the parser has shown the help instead."""
    context = getattr(error, "ctx", None)
    usage = " ".join(context.get_usage().split()) if context is not None else "Usage: headrace COMMAND"
    command = context.command_path if context is not None else "headrace"
    return CommandFailed(_words(error), hint=f"{usage}; `{command} --help` says more", code=Exit.USAGE)


def _words(error: Any) -> str:
    if meant := getattr(error, "possibilities", None):
        return f"{_lower(error.message)}; did you mean {' or '.join(sorted(meant))}?"
    wrong = getattr(error.__cause__, "errors", None)  # a value of the wrong kind, in pydantic's words
    if wrong is None:
        return _lower(error.format_message())
    first = wrong()[0]
    hint = " / ".join(error.param.opts) if error.param is not None else "the value"
    why = first["msg"].removeprefix("Value error, ").removeprefix(f"{first['input']!r} ").removeprefix("Input ")
    return f"{hint} {first['input']!r} {why.partition(', unable')[0].rstrip('.')}"


def _lower(words: str) -> str:
    return words[:1].lower() + words[1:].rstrip(".")
