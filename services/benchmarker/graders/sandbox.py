"""Run a function that nobody trusts, in a process of its own that can do nothing but compute, and read what it gave.

Answers "what did it return for these arguments?". The process gets an empty environment, an empty folder, no site packages,
little memory and processor time; it is killed with its whole group when its time is over or its output too long. What it may do
at all is settled inside it (``inside``), before the first line of the answer runs. Nothing that it says is trusted either.
"""

from __future__ import annotations

import builtins
import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import psutil

INSIDE = Path(__file__).with_name("inside.py")
WALL_S = 10.0
"""An interpreter starts in 0.03 s, and in seconds on a machine that is busy with a model."""
BUSY_WALLS = 6.0
"""So many times as long for a program that computes and was not given its processor time: a busy machine is no wrong answer."""
CPU_S = 2
"""No case of a suite needs a hundredth of it."""
MEMORY_BYTES = 512 * 1024 * 1024
SAID_BYTES_MAX = 64 * 1024
SOURCE_BYTES_MAX = 48 * 1024
"""With its arguments it fits into a pipe, so that writing never waits for a process that does not read."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """``results`` in the order of the cases, or the ``problem`` of the answer, or why nothing could be run here at all."""

    results: tuple[Any, ...] = ()
    problem: str | None = None
    unavailable: str | None = None


def run_function(
    source: str, function: str, cases: Sequence[Sequence[Any]], *, wall_s: float = WALL_S, cpu_s: int = CPU_S
) -> Ran:
    """Blocks for up to ``wall_s``, longer where the machine is busy. A case that raised has no result, so a crash in one of them
    is a problem of all."""
    asked = msgspec.json.encode(
        {"source": source, "function": function, "cases": cases, "cpu_s": cpu_s, "memory_bytes": MEMORY_BYTES}
    )
    if len(asked) > SOURCE_BYTES_MAX:
        return Ran(problem=f"the code has more than {SOURCE_BYTES_MAX} bytes")
    with tempfile.TemporaryDirectory(prefix="headrace-code-") as folder:
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", "-X", "utf8", str(INSIDE)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                cwd=folder,
                start_new_session=True,
            )
        except OSError as error:
            return Ran(unavailable=f"no process could be started to run the code: {error}")
        try:
            began_s = time.monotonic()
            said, in_time = _talk(process, asked, began_s + wall_s)
            if not in_time and _is_starved(process, cpu_s):
                more, in_time = _talk(process, b"", began_s + BUSY_WALLS * wall_s)
                said += more
            starved = not in_time and _is_starved(process, cpu_s)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None and not pipe.closed:
                    pipe.close()
    if starved:
        return Ran(unavailable=f"the machine was too busy to run the code within {BUSY_WALLS * wall_s:g} s")
    if not in_time:
        return Ran(problem=f"did not end within {wall_s:g} s")
    return _read(said, process.returncode)


def _talk(process: subprocess.Popen[bytes], asked: bytes, until_s: float) -> tuple[bytes, bool]:
    """What it said, and whether it stopped by itself; it is stopped where it says too much."""
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(BrokenPipeError, ValueError):  # closed: this goes on listening
        process.stdin.write(asked)
        process.stdin.close()
    said = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while len(said) <= SAID_BYTES_MAX:
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return bytes(said), False
            if selector.select(left_s):
                piece = os.read(process.stdout.fileno(), SAID_BYTES_MAX)
                if not piece:
                    break
                said += piece
    return bytes(said), True


def _is_starved(process: subprocess.Popen[bytes], cpu_s: int) -> bool:
    """It wants to compute, and had less processor time than it may have; whoever sleeps wants nothing."""
    with contextlib.suppress(psutil.Error):
        seen = psutil.Process(process.pid)
        times = seen.cpu_times()
        return bool(seen.status() == psutil.STATUS_RUNNING and times.user + times.system < cpu_s)
    return False


class _Said(msgspec.Struct):
    results: tuple[Any, ...] = ()
    problem: Literal["syntax", "start", "missing", "case", "long"] | None = None
    case: int = 0
    error: str = ""


def _read(said: bytes, status: int) -> Ran:
    if len(said) > SAID_BYTES_MAX:
        return Ran(problem=f"said more than {SAID_BYTES_MAX} bytes")
    if not said:
        died = signal.strsignal(-status) if status < 0 else f"status {status}"
        return Ran(problem=f"ended without a result ({died}): out of time or memory, or it gave up by itself")
    try:
        found = msgspec.json.decode(said, type=_Said)
    except (msgspec.DecodeError, RecursionError):
        return Ran(problem="said something that is no result")
    return Ran(problem=_words(found)) if found.problem is not None else Ran(results=found.results)


def _words(said: _Said) -> str:
    """Only what we know: a program's own error may be called anything, and goes into events."""
    is_known = isinstance(getattr(builtins, said.error, None), type)
    error = said.error if is_known else "an error of its own"
    match said.problem:
        case "syntax":
            return f"is no Python: {error}"
        case "start":
            return f"failed before the function was called: {error}"
        case "missing":
            return "defines no such function"
        case "long":
            return f"case {said.case} gave a very long result"
        case _:
            return f"case {said.case} failed: {error}"
