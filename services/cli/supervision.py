"""Child processes that are started together, watched, restarted and stopped.

Answers "is each part up, and who brings it back?". Knows nothing of NATS or HTTP: whether a part is ready is the part's own
question. It must leave nothing running, however it ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from schemas.errors import HeadraceError
from services.cli.exits import CommandFailed
from services.cli.part_log import PartLog

READY_POLL_S = 0.05
READY_WITHIN_S = 90.0
"""A model took up to 16 s to load on a busy machine; five times that is no longer slow but stuck."""
BACKOFF_S = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
SAY_AGAIN_S = 5.0
"""Whoever watches a stop is told anew that it goes on."""
STEADY_S = 60.0
"""A part that ran this long has recovered: its next crash starts at the first step of the backoff again."""
AT_ONCE_S = 0.5
"""A part with nothing in hand has ended by then."""

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One process to run. ``ready`` answers None until it is, then a few words about it; without it, the part's own log line
    says so (services.runtime.lifecycle). ``own_word`` asks for both: what answers at an address may be somebody else.
    ``module`` runs by ``child``.

    Parts of a lower ``stop_order`` have ended before the next ones are asked to: a worker drains while its router still serves.
    """

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    log: Path
    drain_s: float = 5.0
    stop_order: int = 0
    ready: Callable[[], Awaitable[str | None]] | None = None
    own_word: bool = False

    def command(self) -> list[str]:
        return [sys.executable, "-m", "services.cli.child", str(os.getpid()), self.module, *self.arguments]


class Child:
    """A part's present process. ``process`` is None before its first start only."""

    def __init__(self, part: Part) -> None:
        self.part = part
        self.process: asyncio.subprocess.Process | None = None
        self.restarts = 0
        self.log = PartLog(part.log)

    @property
    def pid(self) -> int:
        if self.process is None:
            raise CommandFailed(f"{self.part.name} was not started yet")
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.returncode is None

    async def start(self) -> None:
        """A session of its own: Ctrl-C in the terminal reaches only ``headrace``, which then stops the parts in order."""
        with self.log.begin() as log:
            self.process = await asyncio.create_subprocess_exec(
                *self.part.command(),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=asyncio.subprocess.STDOUT,
                env={**os.environ, **log_settings(os.environ), **self.part.environment},
                start_new_session=True,
            )

    async def stop(self) -> None:
        """SIGTERM, then after the part's drain time SIGKILL to all of its session. A paused process is woken for it."""
        if self.process is None:
            return
        if self.process.returncode is None:
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), self.part.drain_s)
        self._signal(signal.SIGKILL)
        await self.process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number) if number == signal.SIGKILL else os.kill(self.pid, number)

    async def ready(self) -> str | None:
        if (self.part.ready is None or self.part.own_word) and not self.log.says_ready:
            return None
        return await self.part.ready() if self.part.ready is not None else ""

    def present_words(self) -> str:
        """Why it is not ready yet, for whoever waited: whether it says so itself, and what it wrote last."""
        alone = " says that it is ready, but nobody confirms it;" if self.log.says_ready else ""
        return f"{self.part.name}{alone} wrote last: {self.log.tail()}"


class Supervisor:
    """Starts parts at the same time, says one line for each that is ready, brings a crashed one back with backoff."""

    def __init__(self, say: Say, *, restart: bool = True, backoff_s: Sequence[float] = BACKOFF_S) -> None:
        self.children: dict[str, Child] = {}
        self._say = say
        self._restart = restart
        self._backoff_s = backoff_s
        self._watchers: list[asyncio.Task[None]] = []

    async def start(self, parts: Iterable[Part], *, within_s: float = READY_WITHIN_S) -> None:
        """All parts, ready; raises CommandFailed with the log's last lines when one ends or does not get ready in time."""
        started = [Child(part) for part in parts]
        self.children.update((child.part.name, child) for child in started)
        for child in started:
            await child.start()
        waiting = list(started)

        async def one(child: Child) -> None:
            await self._until_ready(child, beside=started)
            waiting.remove(child)

        try:
            async with asyncio.timeout(within_s):
                await together(*map(one, started))
        except TimeoutError:
            slow = "\n".join(["", *(child.present_words() for child in waiting)])
            raise CommandFailed(f"not ready after {within_s:g} s:{slow}", hint=_logs(waiting)) from None
        self._watchers += [asyncio.create_task(self._watch(child)) for child in started]

    async def add(self, part: Part, *, within_s: float = READY_WITHIN_S) -> None:
        """One more part while others run: whatever becomes of it is said and ends nobody else. It is watched from its start."""
        child = Child(part)
        self.children[part.name] = child
        try:
            await child.start()
            self._watchers.append(asyncio.create_task(self._watch(child)))
            async with asyncio.timeout(within_s):
                await self._until_ready(child)
        except TimeoutError:
            self._say(f"not ready after {within_s:g} s: {child.present_words()} ({_logs([child])})")
        except (CommandFailed, OSError) as error:
            self._say(str(error))

    async def stop(self) -> None:
        """All parts, in their ``stop_order``, each within its drain time."""
        for watcher in self._watchers:
            watcher.cancel()
        await asyncio.gather(*self._watchers, return_exceptions=True)
        self._watchers.clear()
        children = sorted(self.children.values(), key=lambda child: child.part.stop_order)
        for _, stage in groupby(children, key=lambda child: child.part.stop_order):
            await self._stop(list(stage))

    async def _stop(self, stage: Sequence[Child]) -> None:
        """Whoever does not end at once is named: somebody sits before it and wonders."""
        stopping = {asyncio.create_task(child.stop()): child.part for child in stage}
        since = asyncio.get_running_loop().time()
        _, slow = await asyncio.wait(stopping, timeout=AT_ONCE_S) if stopping else (set(), set())
        again = ""
        while slow:
            parts = [stopping[task] for task in slow]
            names = ", ".join(sorted(part.name for part in parts))
            gone = round(asyncio.get_running_loop().time() - since) if again else 0
            left = max(0.0, max(part.drain_s for part in parts) - gone)
            self._say(f"{again}waiting for {names}, at most {left:g} s")
            again = "still "
            _, slow = await asyncio.wait(slow, timeout=SAY_AGAIN_S)
        await asyncio.gather(*stopping)

    async def restart(self, name: str) -> None:
        """Bring a part back now (tests that killed it; the watcher does it where restarts are on)."""
        child = self.children[name]
        await child.stop()
        child.restarts += 1
        await child.start()
        await self._until_ready(child, quiet=True)

    async def _until_ready(self, child: Child, *, beside: Sequence[Child] = (), quiet: bool = False) -> None:
        """``beside`` are those that nobody watches yet: waiting for a router that has ended would tell nobody why."""
        while (words := await child.ready()) is None:
            for one in (child, *beside):
                if not one.running:
                    raise CommandFailed(
                        f"{one.part.name} ended while starting: {one.log.last_words()}", hint=_logs([one])
                    )
            await asyncio.sleep(READY_POLL_S)
        if not quiet:
            self._say(f"{child.part.name} ready{': ' if words else ''}{words}")

    async def _watch(self, child: Child) -> None:
        step = 0
        loop = asyncio.get_running_loop()
        while child.process is not None:
            since = loop.time()
            code = await child.process.wait()
            if not self._restart:
                return
            step = 0 if loop.time() - since >= STEADY_S else step
            wait_s = self._backoff_s[min(step, len(self._backoff_s) - 1)]
            step += 1
            self._say(f"{child.part.name} ended unexpectedly ({_ending(code)}); starting it again in {wait_s:g} s")
            await asyncio.sleep(wait_s)
            child.restarts += 1
            await child.start()
            with suppress(CommandFailed):
                await self._until_ready(child)


async def together(*work: Coroutine[Any, Any, object]) -> None:
    """All at the same time; the first error cancels the rest and is raised as itself."""
    try:
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(one)
    except* HeadraceError as failures:
        raise first_of(failures) from None


def first_of(failures: BaseExceptionGroup[HeadraceError]) -> HeadraceError:
    first = failures.exceptions[0]
    return first_of(first) if isinstance(first, BaseExceptionGroup) else first


def log_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """JSON lines, and no quieter than the line that says "ready"."""
    is_debug = environ.get("HEADRACE_LOG_LEVEL", "").lower() == "debug"
    return {"HEADRACE_LOG": "json", "HEADRACE_LOG_LEVEL": "debug" if is_debug else "info"}


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


def _logs(children: Sequence[Child]) -> str:
    return "see " + ", ".join(str(child.part.log) for child in children)
