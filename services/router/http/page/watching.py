"""Who looks at the page, and what does each get next? One look at the router for all of them, a few times a second.

Nobody looks, nothing is computed. A viewer that reads slowly skips nothing and holds up nobody: the last steps are kept, and who
missed more of them gets everything anew.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator

import msgspec

from services.router.http.page.board import Board
from services.router.http.page.rendering import static
from services.router.http.page.words import LANGUAGES, Language
from services.router.port import RouterPort
from services.runtime.ids import new_id
from services.runtime.logs import logger

STEP_S = 0.5
"""Faster than one reads."""
SHARE_MOST = 0.1
"""Of the router's time, for all who look: a look that takes 100 ms is made once a second."""
STEPS_KEPT = 20

log = logger("page")
_encode = msgspec.json.Encoder().encode


class Watching:
    """The board of one language with its viewers."""

    def __init__(self, router: RouterPort, language: Language) -> None:
        self.board = Board(router, language)
        self._boot = new_id()
        self._version = 0
        self._steps: deque[tuple[int, bytes]] = deque(maxlen=STEPS_KEPT)
        self._looked_at = 0.0
        self._looked_for_s = 0.0
        self._viewers = 0
        self._loop: asyncio.Task[None] | None = None
        self._moved = asyncio.Condition()
        self._closed = False

    async def close(self) -> None:
        """The router stops: nobody's page holds it up, and browsers come again by themselves."""
        self._closed = True
        async with self._moved:
            self._moved.notify_all()

    @property
    def version(self) -> str:
        return f"{self._boot}-{self._version}"

    def look(self) -> bool:
        """Unless somebody did a moment ago. True where something changed."""
        began = time.monotonic()
        if began - self._looked_at < self._pause_s():
            return False
        changed = self.board.look(time.time())
        self._looked_at = time.monotonic()
        self._looked_for_s = self._looked_at - began
        if not changed:
            return False
        self._version += 1
        self._steps.append((self._version, self._event(changed)))
        return True

    async def events(self, since: str) -> AsyncGenerator[bytes]:
        """What changes from ``since`` (a version) on, until the router stops."""
        self._viewers += 1
        if self._loop is None:
            self._loop = asyncio.create_task(self._run())
        try:
            self.look()
            boot, _, number = since.partition("-")
            at = int(number) if boot == self._boot and number.isascii() and number.isdigit() else -1
            while not self._closed:
                first = self._steps[0][0] if self._steps else self._version + 1
                if at + 1 < first or at > self._version:
                    at = self._version
                    yield self._event({**self.board.whole(), "digest": static().digest})
                for version, step in list(self._steps):
                    if version == at + 1:
                        at = version
                        yield step
                while self._version == at and not self._closed:
                    async with self._moved:
                        await self._moved.wait()
        finally:
            self._viewers -= 1
            if not self._viewers and self._loop is not None:
                self._loop.cancel()
                self._loop = None

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._pause_s())
            try:
                moved = self.look()
            except Exception as error:  # one bad look must not stop the page of everybody
                log.error("the page could not be drawn", action="page_failed", error=repr(error), exc_info=error)
                continue
            if moved:
                async with self._moved:
                    self._moved.notify_all()

    def _pause_s(self) -> float:
        return max(STEP_S, self._looked_for_s / SHARE_MOST)

    def _event(self, changed: dict[str, object]) -> bytes:
        data = _encode({"now": self.board.now, **changed})
        return b"id: " + self.version.encode() + b"\nevent: page\ndata: " + data + b"\n\n"


class Watchers:
    """A board for each language, made when somebody first asks for it."""

    def __init__(self, router: RouterPort) -> None:
        self._router = router
        self._known: dict[Language, Watching] = {}

    async def close(self) -> None:
        for watching in self._known.values():
            await watching.close()

    def of(self, language: Language) -> Watching:
        assert language in LANGUAGES
        if language not in self._known:
            self._known[language] = Watching(self._router, language)
        return self._known[language]
