"""Coding agents' own command lines finish a session with tool calls through us and a scripted model. ``make e2e-agents``.

Each has an empty home and environment, no telemetry and no updates, and for whatever is not loopback a proxy that leads nowhere.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.docker import PARTS
from support.scripted_model import DONE, Call, Seen, Steps, scripted
from tour.fleet import through

pytestmark = pytest.mark.e2e

BIN = PARTS / "npm" / "node_modules" / ".bin"
ASKED = "Make the greeting in greeting.txt friendly."
WITHIN_S = 180


def command(name: str) -> str:
    if not (BIN / name).exists() or shutil.which("node") is None:
        pytest.skip(f"{name} is not here; `make e2e-agents` installs it where npm and a registry that has it are")
    return str(BIN / name)


class Desk:
    """An empty home, and a folder with a file to work on."""

    def __init__(self, folder: Path) -> None:
        self.home, self.work = folder / "home", folder / "work"
        self.home.mkdir()
        self.work.mkdir()
        self.file = self.work / "greeting.txt"
        self.file.write_text("Hello world\n")

    async def run(self, arguments: Sequence[str], more: Mapping[str, str]) -> str:
        """What it printed. It ends well, or the test fails with its words."""
        nowhere = "http://127.0.0.1:9"
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "TERM": "dumb", "NO_COLOR": "1",
            "HTTP_PROXY": nowhere, "HTTPS_PROXY": nowhere, "NO_PROXY": "127.0.0.1,localhost", **more,
        }  # fmt: skip
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *arguments, cwd=self.work, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
        try:
            said, error = await asyncio.wait_for(process.communicate(), WITHIN_S)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, error.decode()[-2000:]
        return said.decode()


async def test_opencode_reads_a_file_edits_it_and_is_done(tmp_path: Path) -> None:
    """It speaks chat completions, streamed."""
    opencode, desk = command("opencode"), Desk(tmp_path)
    edit = {"filePath": str(desk.file), "oldString": "world", "newString": "friend"}
    calls = [Call("read", {"filePath": str(desk.file)}), Call("edit", edit)]
    async with scripted(lambda _: calls) as (url, seen), through(tmp_path, {"desk": url}) as router:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": f"{router}/v1", "apiKey": "none"},
            "models": {"auto": {}},
        }
        settings = {"autoupdate": False, "share": "disabled", "provider": {"headrace": provider}}
        (desk.work / "opencode.json").write_text(json.dumps(settings))
        off = dict.fromkeys(("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH"), "1")
        said = await desk.run([opencode, "run", "--model", "headrace/auto", ASKED], off)
    finished(desk, said, seen)


async def test_codex_reads_a_file_edits_it_and_is_done(tmp_path: Path) -> None:
    """It speaks Responses, streamed; the model behind us speaks chat completions alone."""
    codex, desk = command("codex"), Desk(tmp_path)
    settings = desk.home / ".codex" / "config.toml"
    settings.parent.mkdir()
    free = (
        "--dangerously-bypass-approvals-and-sandbox"  # its sandbox needs a kernel's leave that containers do not give
    )
    async with scripted(shell_steps()) as (url, seen), through(tmp_path, {"desk": url}) as router:
        settings.write_text(
            'model = "auto"\nmodel_provider = "headrace"\ncheck_for_update_on_startup = false\n[analytics]\nenabled = false\n'
            f'[model_providers.headrace]\nname = "Headrace"\nbase_url = "{router}/v1"\nwire_api = "responses"\n'
        )
        said = await desk.run([codex, "exec", "--skip-git-repo-check", free, ASKED], {})
    finished(desk, said, seen)


def shell_steps() -> Steps:
    """The agent's versions have had three tools for a shell, each with a form of its own."""
    commands = ("cat greeting.txt", "sed -i s/world/friend/ greeting.txt")
    forms: dict[str, Callable[[str], dict[str, Any]]] = {
        "exec_command": lambda line: {"cmd": line},
        "shell_command": lambda line: {"command": line},
        "shell": lambda line: {"command": ["bash", "-c", line]},
    }

    def steps(tools: frozenset[str]) -> list[Call]:
        name = next(name for name in forms if name in tools)
        return [Call(name, forms[name](line)) for line in commands]

    return steps


def finished(desk: Desk, said: str, seen: Sequence[Seen]) -> None:
    assert desk.file.read_text() == "Hello friend\n"
    assert DONE in said
    turns = [len(turn.results) for turn in seen]
    assert turns == [0, 1, 2]
    assert "Hello world" in seen[1].results[0]
