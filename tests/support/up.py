"""``headrace up`` as a person runs it: a process whose lines can be read, that can be interrupted and looked at."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from support.eventually import PATIENCE_S

ROOT = Path(__file__).parents[2]


class Up:
    """``async with Up(folder, "--demo") as up``. Everything it starts has ``folder`` in its command line. ``command`` is another
    one that speaks as it does."""

    def __init__(self, folder: Path, *options: str, command: tuple[str, ...] = ("up",)) -> None:
        self.folder = folder
        self._command = command
        self.said: list[str] = []
        self.last: dict[str, Any] = {}
        self._options = options
        self._read = asyncio.Condition()

    async def __aenter__(self) -> Up:
        self.process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "services.cli",
                *self._command,
                "--json",
                "--data",
                str(self.folder / "data"),
                *self._options,
            ),
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(self.folder)},
            stdout=asyncio.subprocess.PIPE,
            limit=2**24,
        )
        self._reader = asyncio.create_task(self._lines())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.terminate()
        await self.ended()

    async def until(self, words: str, *, within_s: float = PATIENCE_S, after: int = 0) -> str:
        """The first line from number ``after`` on that contains the words."""

        def found() -> list[str]:
            return [line for line in self.said[after:] if words in line]

        async with asyncio.timeout(within_s), self._read:
            await self._read.wait_for(lambda: found() or self._reader.done())
        assert found(), f"{words!r} was not said; what was: {self.said}"
        return found()[0]

    async def ended(self, *, within_s: float = 120.0) -> int:
        async with asyncio.timeout(within_s):
            await self._reader
            return await self.process.wait()

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def left_running(self, which: Callable[[str], bool] = lambda _command: True) -> list[str]:
        """The command lines of its processes that are alive now."""
        commands = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE:
                    commands.append(" ".join(process.cmdline()))
            except psutil.NoSuchProcess:
                continue
        return [command for command in commands if str(self.folder) in command and which(command)]

    def pid_of(self, module: str) -> int:
        """The process that runs a module."""
        found = [process.pid for process in psutil.Process(self.process.pid).children() if module in process.cmdline()]
        assert found, f"nobody runs {module}"
        return found[0]

    async def _lines(self) -> None:
        assert self.process.stdout is not None
        async for raw in self.process.stdout:
            message = json.loads(raw)
            async with self._read:
                self.said.append(message["say"]) if "say" in message else self.last.update(message)
                self._read.notify_all()
        async with self._read:
            self._read.notify_all()
