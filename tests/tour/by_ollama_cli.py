"""The tour of the real ``ollama`` command line: what it prints and how it ends, without times and sizes."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from tour.observing import Seen


async def tour(binary: str, url: str, model: str, home: Path) -> Seen:
    run = Cli(binary, url, home)
    shown = await run("show", model)
    return {
        "list": {"status": (await run("list")).status, "has it": model in (await run("list")).said},
        "run": await run.answered("run", model, "Say hello to your friend."),
        "run with options": await run.answered(
            "run", model, "--format", "json", "--keepalive", "5m", "Give a city as JSON."
        ),
        "running": running(await run("ps"), model),
        "show": {"status": shown.status, "titles": " ".join(re.findall(r"^ {2}(\w.*?)\s*$", shown.said, re.M))},
        "show what is not there": ended(await run("show", "no-such-model")),
        "stop what is not there": {"status": (await run("stop", "no-such-model")).status},
        "run what is not there": {"status": (await run("run", "no-such-model", "Hi")).status},
    }


def running(end: End, model: str) -> Seen:
    """The model's row without how long it will stay."""
    row = next((line for line in end.said.splitlines() if line.startswith(model)), "")
    columns = dict(zip(("name", "id", "size", "processor", "context", "until"), re.split(r" {2,}", row), strict=False))
    return {"status": end.status, **columns, "until": re.sub(r".*(?=from now)", "", columns.get("until", "").strip())}


def ended(end: End) -> Seen:
    """With the words of an error, which the command line takes from the server."""
    return {"status": end.status, "words": end.error.strip().partition(";")[0]}


class End:
    def __init__(self, status: int, said: str, error: str) -> None:
        self.status, self.said, self.error = status, said, error


class Cli:
    """``await cli("list")``: one command with an empty home."""

    def __init__(self, binary: str, url: str, home: Path) -> None:
        self._binary = binary
        self._environment = {"PATH": os.environ["PATH"], "HOME": str(home), "OLLAMA_HOST": url, "TERM": "dumb"}

    async def __call__(self, *arguments: str) -> End:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            self._binary, *arguments, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe, env=self._environment
        )
        try:
            said, error = await asyncio.wait_for(process.communicate(), 120)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise
        return End(process.returncode or 0, said.decode(), error.decode())

    async def answered(self, *arguments: str) -> Seen:
        end = await self(*arguments)
        return {"status": end.status, "text": "words" if end.said.strip() else ""}
