"""What runs inside the sandbox: give up every right, then run the answer's function and say what it returned.

Never imported: ``sandbox`` starts it as a script of its own, with ``-I -S``, so it knows the standard library only. Reads one
JSON object from stdin, writes one to stdout. Three locks, from the outside in: the kernel's limits on time, memory, files and
processes; on Linux (x86-64, ARM64) a list of the only system calls that may still be made, in which there is no network, no new
process, no signal to others and no file to write; and an audit hook that refuses the same in Python, for the other platforms,
and everywhere what is to be read beside Python's own library.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import resource
import struct
import sys
from types import CodeType
from typing import Any

RESULT_CHARS_MAX = 4000
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

READS = ("open", "os.listdir", "os.scandir")
LIBRARY = tuple(folder for folder in sys.path if folder)
"""With ``-I -S``: the standard library alone."""

# fmt: off
# Reading, memory, clocks and ending: what an interpreter needs to compute and to import from its own library.
CALLS: dict[str, tuple[int, dict[int, int], tuple[int, ...]]] = {
    # machine: (the kernel's number for it, {call that opens: which argument holds its flags}, other calls)
    "x86_64": (0xC000003E, {257: 2, 2: 1}, (
        0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 17, 19, 20, 21, 24, 25, 28, 32, 35, 39, 60, 63, 79, 89, 96, 99,
        102, 104, 107, 108, 131, 186, 202, 204, 217, 228, 229, 230, 231, 262, 267, 269, 318, 324, 332, 334, 439)),
    "aarch64": (0xC00000B7, {56: 2}, (
        17, 23, 48, 57, 61, 62, 63, 64, 65, 66, 67, 73, 78, 79, 80, 93, 94, 98, 101, 113, 114, 115, 123, 124, 132, 134,
        135, 139, 160, 169, 172, 174, 175, 176, 177, 178, 179, 214, 215, 216, 222, 226, 233, 278, 283, 291, 293, 439)),
}
# fmt: on
REFUSED = (
    "socket.",
    "subprocess.",
    "ctypes.",
    "shutil.",
    "fcntl.",
    "signal.",
    "winreg.",
    "sys.addaudithook",
    "os.chflags",
    "os.chmod",
    "os.chown",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.kill",
    "os.killpg",
    "os.link",
    "os.mkdir",
    "os.posix_spawn",
    "os.putenv",
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.setxattr",
    "os.spawn",
    "os.startfile",
    "os.symlink",
    "os.system",
    "os.truncate",
    "os.unsetenv",
    "os.utime",
    "pty.",
    "resource.setrlimit",
)  # fmt: skip


def set_limits(cpu_s: int, memory_bytes: int) -> None:
    """Soft and hard, so that they cannot be lifted again. One that a platform does not know is skipped."""
    limits = {
        "RLIMIT_CPU": cpu_s,
        "RLIMIT_AS": memory_bytes,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NPROC": 0,
        "RLIMIT_NOFILE": 32,
        "RLIMIT_CORE": 0,
    }
    for name, value in limits.items():
        with contextlib.suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (value, value))


def allow_only_computing() -> None:
    """Every call that is not listed fails with "not permitted" (seccomp). Elsewhere than on Linux nothing happens."""
    machine = CALLS.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        return
    architecture, opening, allowed = machine
    load, equal, has_bits, give = 0x20, 0x15, 0x45, 0x06
    refuse, allow, kill = 0x00050000 | 1, 0x7FFF0000, 0x80000000
    steps: list[tuple[int, int, int, int]] = [
        (load, 0, 0, 4),
        (equal, 1, 0, architecture),
        (give, 0, 0, kill),
        (load, 0, 0, 0),
    ]
    for call in allowed:
        steps += [(equal, 0, 1, call), (give, 0, 0, allow)]
    for call, argument in opening.items():
        steps += [(equal, 0, 4, call), (load, 0, 0, 16 + 8 * argument), (has_bits, 0, 1, WRITES)]
        steps += [(give, 0, 0, refuse), (give, 0, 0, allow)]
    steps.append((give, 0, 0, refuse))
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    header = struct.pack(
        "HxxxxxxP" if ctypes.sizeof(ctypes.c_void_p) == 8 else "HxxP", len(steps), ctypes.addressof(program)
    )
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    no_new_rights, filter_calls, by_program = 38, 22, 2
    if prctl(no_new_rights, 1, 0, 0, 0) == 0:
        prctl(filter_calls, by_program, ctypes.create_string_buffer(header), 0, 0)


def refuse(event: str, arguments: tuple[Any, ...]) -> None:
    is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES
    if event.startswith(REFUSED) or is_write or (event in READS and not is_library(arguments[0])):
        raise PermissionError(f"{event} is not permitted here")


def is_library(path: object) -> bool:
    """Whether an interpreter needs it: Python's own library. Nothing else is to be read, the suites with their results least of
    all. A number is a file that was open already."""
    if isinstance(path, int):
        return True
    text = path if type(path) is str else os.fsdecode(path) if type(path) is bytes else ""
    is_below = any(text == folder or text.startswith(folder + os.sep) for folder in LIBRARY)
    return is_below and not any(part in text for part in ("/..", "site-packages", "dist-packages"))


def results_of(source: str, function: str, cases: list[list[Any]]) -> dict[str, Any]:
    """The results, or the ``problem`` (``sandbox`` has words for each) with the case and the error. Whatever the answer raises is
    its own problem."""
    try:
        code: CodeType = compile(source, "<answer>", "exec")
    except BaseException as error:  # noqa: BLE001 - a text can break the parser in many ways
        return {"problem": "syntax", "error": name_of(error)}
    space: dict[str, Any] = {"__name__": "answer"}
    try:
        exec(code, space)
    except BaseException as error:  # noqa: BLE001
        return {"problem": "start", "error": name_of(error)}
    if not callable(space.get(function)):
        return {"problem": "missing"}
    results = []
    for number, given in enumerate(cases, 1):
        try:
            result = json.dumps(space[function](*given))
        except BaseException as error:  # noqa: BLE001
            return {"problem": "case", "case": number, "error": name_of(error)}
        if len(result) > RESULT_CHARS_MAX:
            return {"problem": "long", "case": number}
        results.append(json.loads(result))
    return {"results": results}


def name_of(error: BaseException) -> str:
    return type(error).__name__


def main() -> None:
    asked = json.loads(sys.stdin.buffer.read())
    verdict = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    set_limits(asked["cpu_s"], asked["memory_bytes"])
    allow_only_computing()
    sys.addaudithook(refuse)
    said = json.dumps(results_of(asked["source"], asked["function"], asked["cases"]))
    os.write(verdict, said.encode())
    os._exit(0)


if __name__ == "__main__":
    main()
