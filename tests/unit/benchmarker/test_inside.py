"""Each of the three locks alone: what the others would have refused must be refused by this one too."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

from services.benchmarker.graders import inside

FILE = Path(inside.__file__)
LINUX = sys.platform == "linux" and platform.machine() in inside.CALLS
DEEDS = {
    "network": "import socket; socket.socket()",
    "write": "import os; os.open({target!r}, os.O_CREAT | os.O_WRONLY)",
    "read and write": "import os; os.open({kept!r}, os.O_RDWR)",
    "append": "open({kept!r}, 'a')",
    "remove": "import os; os.unlink({kept!r})",
    "folder": "import os; os.mkdir({target!r})",
    "fork": "import os; os.fork() or os._exit(0)",
    "thread": "import _thread; _thread.start_new_thread(print, ())",
    "exec": "import os; os.execv('/bin/true', ['true'])",
    "kill": "import os; os.kill(os.getppid(), 0)",
    "limits": "import resource; resource.setrlimit(resource.RLIMIT_CPU, (60, 60))",
    "priority": "import os; os.nice(1)",
    "own process": "import os; os.setsid()",
}


def attempt(lock: str, deed: str, tmp_path: Path) -> str:
    """What became of the deed in a process with only this lock: ``done`` or an error's name."""
    kept = tmp_path / "kept"
    kept.write_text("kept")
    done = deed.format(target=str(tmp_path / "target"), kept=str(kept))
    program = (
        f"import sys, runpy\nspace = runpy.run_path({str(FILE)!r}, run_name='inside')\n{lock}\n"
        f"try:\n    exec({done!r})\nexcept BaseException as error:\n    print(type(error).__name__)\n"
        "else:\n    print('done')\n"
    )
    ran = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, timeout=60)
    assert kept.read_text() == "kept" or lock == "pass"
    return ran.stdout.strip() or f"status {ran.returncode}"


@pytest.mark.skipif(not LINUX, reason="the list of system calls is for Linux on x86-64 and ARM64")
@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
def test_the_kernel_permits_nothing_but_computing(deed: str, tmp_path: Path) -> None:
    said = attempt("space['allow_only_computing']()", deed, tmp_path)
    assert said in {"PermissionError", "OSError", "RuntimeError", "error", "ValueError"}, said
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    "deed", [deed for name, deed in DEEDS.items() if name not in {"thread", "priority", "own process"}]
)
def test_the_audit_hook_refuses_the_same_everywhere(deed: str, tmp_path: Path) -> None:
    assert attempt("sys.addaudithook(space['refuse'])", deed, tmp_path) == "PermissionError"


@pytest.mark.parametrize(
    "deed",
    ["open({kept!r}).read()", "import os; os.open({kept!r}, os.O_RDONLY)", "import os; os.listdir('/')",
     "import os; os.scandir('/')", "import os; open(os.__file__ + '/../../../etc/passwd')",
     "import pathlib; pathlib.Path({kept!r}).read_text()"],
)  # fmt: skip
def test_nothing_is_read_but_python_s_own_library(deed: str, tmp_path: Path) -> None:
    assert attempt("sys.addaudithook(space['refuse'])", deed, tmp_path) == "PermissionError"
    assert attempt("sys.addaudithook(space['refuse'])", "import json, decimal, zipfile, sqlite3", tmp_path) == "done"


@pytest.mark.parametrize("deed", [DEEDS["write"], DEEDS["folder"], DEEDS["append"]])
def test_without_a_lock_the_same_is_done(deed: str, tmp_path: Path) -> None:
    """Else the tests above would pass whatever the locks did."""
    assert attempt("pass", deed, tmp_path) == "done"


def test_memory_has_a_limit_that_cannot_be_lifted(tmp_path: Path) -> None:
    lock = f"space['set_limits'](2, {256 * 1024 * 1024})"
    assert attempt(lock, "x = bytearray(10**9)", tmp_path) in {
        "MemoryError",
        "done" if sys.platform == "darwin" else "MemoryError",
    }


def test_an_answers_own_errors_are_its_problem() -> None:
    assert inside.results_of("def f(", "f", []) == {"problem": "syntax", "error": "SyntaxError"}
    assert inside.results_of("1/0", "f", []) == {"problem": "start", "error": "ZeroDivisionError"}
    assert inside.results_of("f = 3", "f", []) == {"problem": "missing"}
    stops = {"problem": "case", "case": 2, "error": "SystemExit"}
    assert inside.results_of("def f(n): return n or exit()", "f", [[1], [0]]) == stops
    assert inside.results_of("def f(): return 'x' * 10000", "f", [[]]) == {"problem": "long", "case": 1}
    assert inside.results_of("def f(a): return (a,)", "f", [[1], [2]]) == {"results": [[1], [2]]}
