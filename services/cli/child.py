"""Run a module as a child that never outlives its parent: ``python -m services.cli.child PARENT_PID MODULE [ARGUMENT…]``.

Answers "what stops the parts when ``headrace up`` is killed with -9?". The child asks the kernel itself instead of using
``preexec_fn``, which is unsafe and warned about in a parent with threads. It must never keep running once orphaned.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
ORPHAN_POLL_S = 1.0
"""Where the kernel offers no signal at the parent's death (macOS), this often costs nothing that could be measured."""


def die_with(parent: int) -> None:
    """SIGTERM to this process when ``parent`` ends; exits at once if it already has."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.getppid() != parent:
        raise SystemExit(f"the parent {parent} ended before its child began; nothing was started")


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(ORPHAN_POLL_S)
    os.kill(os.getpid(), signal.SIGTERM)


def main(arguments: list[str]) -> None:
    parent, module, *rest = arguments
    die_with(int(parent))
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
