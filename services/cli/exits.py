"""How a command ends: exit codes, and one line that says what happened and what to do.

Answers "what does a script see?". Never a traceback for something a user can put right.
"""

from __future__ import annotations

from enum import IntEnum

from schemas.errors import HeadraceError


class Exit(IntEnum):
    """Exit codes of ``headrace``; 2 is also what the argument parser uses. docs/how-to/command-line.md lists them."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_FOUND = 4
    BUSY = 5
    INTERRUPTED = 130


class CommandFailed(HeadraceError):
    """A command that could not do its job; ``hint`` is what the user can do about it."""

    def __init__(self, message: str, *, hint: str | None = None, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.hint = hint
        self.code = code
