"""The real ``nats`` command: found, or built once into ``.parts/`` where Go is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from support.docker import PARTS, Unavailable, run
from support.source import ROOT

VERSION = "v0.5.0"
BUILD_S = 1_200.0
COMMAND_S = 20.0


def nats_command() -> Path:
    """Ours if it was built, else a new build (one minute on two idle cores)."""
    built = PARTS / "bin" / "nats"
    if built.exists():
        return built
    if shutil.which("go") is None:
        raise Unavailable(f"no Go to build the nats command: install Go, or put nats {VERSION} at {built}")
    env = {**os.environ, "GOBIN": str(built.parent)}
    run("nice", "go", "install", f"github.com/nats-io/natscli/nats@{VERSION}", env=env, within_s=BUILD_S)
    return built


def start(binary: Path, url: str, line: str) -> subprocess.Popen[str]:
    """``line`` as a shell in the repository would run it, with ``nats`` meaning ``binary``."""
    return subprocess.Popen(
        ["sh", "-c", line],
        cwd=ROOT,
        env={"PATH": f"{binary.parent}:/usr/bin:/bin", "NATS_URL": url, "HOME": str(PARTS)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
