"""Prompts and answers go when nobody needs them any more, where ``[privacy] keep_s`` is shorter than the server can keep time.

Answers "which texts in TASKS have had their day?". TASKS itself forgets nothing before its duplicate window (2 h) has passed, so
the dispatching router deletes: a task's body and items when it has ended, an answer ``keep_s`` after it was stored, but never
within 60 s, so that its reader gets it. It looks at what is stored, not at what it remembers: a restart forgets nothing, and
whatever comes late goes as well. It must never delete a text of a task that may still run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from schemas.errors import BusError
from schemas.streams import SECOND_NS, TASKS
from schemas.tokens import decode_token
from services.router.dispatch.state import RouterState
from services.runtime.bus import Bus
from services.runtime.logs import logger
from services.runtime.stored import unix_us

log = logger("router")

SWEEP_S = 5.0
LEAST_S = 60.0
"""How long a reader has for its answer, and a body for its task's fact, which is published within 30 s or never."""
PAGE = 100_000
"""Subjects in one answer of the server."""
WINDOW_S = TASKS["duplicate_window"] / SECOND_NS


class Texts:
    """``run`` for ever. ``passed`` waits a little for the fold to pass a sequence."""

    def __init__(
        self,
        bus: Bus,
        keep_s: float | None,
        *,
        state: Callable[[], RouterState],
        decides: Callable[[], bool],
        passed: Callable[[int], Awaitable[None]],
    ) -> None:
        self._bus, self._keep_s, self._state, self._decides, self._passed = bus, keep_s, state, decides, passed
        self._stored: dict[str, tuple[int, int]] = {}
        """Where a text lies and since when, by subject."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_S)
            if self._keep_s is not None and self._keep_s < WINDOW_S and self._decides():
                try:
                    await self.sweep(self._keep_s)
                except BusError as error:
                    log.warning("texts stay a little longer", action="texts_failed", error=str(error))

    async def sweep(self, keep_s: float) -> int:
        """Delete what has had its day; returns how many messages that were."""
        subjects, now_us = await self._subjects()
        self._stored = {subject: place for subject, place in self._stored.items() if subject in subjects}
        last = await self._bus.last_seq("EVENTS")  # after the subjects: every fact of theirs is before this
        await self._passed(last)
        if self._state().position < last:
            return 0  # the fact of a task that we do not know may be among those that we have not read
        deleted = 0
        for subject in subjects:
            if (seq := await self._due(subject, now_us, max(keep_s, LEAST_S))) is not None:
                deleted += await self._bus.delete_message("TASKS", seq, erase=True)
        return deleted

    async def _due(self, subject: str, now_us: int, keep_s: float) -> int | None:
        """The sequence of a text that may go now."""
        parts = subject.split(".")
        kind, task = parts[1], decode_token(parts[5] if parts[1] == "q" else parts[3])
        state = self._state()
        if task in state.tasks:
            return None
        if subject not in self._stored:
            found = await self._bus.last_for("TASKS", subject)
            if found is None:
                return None
            self._stored[subject] = (found.seq, found.at_us)
        seq, at_us = self._stored[subject]
        if kind == "out":
            return seq if now_us - at_us >= keep_s * 1e6 else None
        return seq if task in state.recent or now_us - at_us >= LEAST_S * 1e6 else None

    async def _subjects(self) -> tuple[set[str], int]:
        """What TASKS holds, and the server's time of saying so."""
        found: set[str] = set()
        offset = 0
        while True:
            info = await self._bus.api("STREAM.INFO.TASKS", {"subjects_filter": ">", "offset": offset})
            named = info["state"].get("subjects") or {}
            found |= named.keys()
            offset += len(named)
            if len(named) < PAGE:
                return found, unix_us(info["ts"])
