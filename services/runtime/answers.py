"""Questions on their way, and the answers that come back to one inbox.

Answers "whose is this reply?", and "has it been waited for long enough?". It sends nothing by itself; the connection does.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from schemas.errors import BusError
from services.runtime.wire import Arrived

Answer = asyncio.Future[Arrived | None]
"""None: no answer to this try (the time is over, or the connection was lost); ask again."""

TICK_S = 0.05
"""One timer for all that waits: a timer for each answer, mostly cancelled, cost more than the answer's own bytes."""


class Asked(NamedTuple):
    answer: Answer
    subject: str
    until: float


class Answers:
    """One per connection. A token stays the same over all tries of a question: any answer to any of them will do."""

    def __init__(self) -> None:
        self.inbox = ""
        self._waiting: dict[str, Asked] = {}
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    def token(self) -> str:
        self._count += 1
        return str(self._count)

    def reply(self, token: str) -> str:
        """The reply subject that brings the answer here."""
        return f"{self.inbox}.{token}"

    def expect(self, token: str, subject: str, within_s: float) -> Answer:
        """``subject`` is where the question goes: the server names it when it denies the right to ask. None comes after
        ``within_s``, or a tick later."""
        loop = asyncio.get_running_loop()
        answer: Answer = loop.create_future()
        self._waiting[token] = Asked(answer, subject, loop.time() + within_s)
        if self._timer is None:
            self._timer = loop.call_later(TICK_S, self._tick)
        return answer

    def forget(self, token: str) -> None:
        self._waiting.pop(token, None)

    def arrived(self, message: Arrived) -> None:
        asked = self._waiting.pop(message.subject.rpartition(b".")[2].decode(), None)
        if asked is not None and not asked.answer.done():
            asked.answer.set_result(message)

    def lost(self) -> None:
        """The connection is gone, and with it every answer that was on its way."""
        waiting, self._waiting = self._waiting, {}
        for asked in waiting.values():
            give_up(asked.answer)

    def denied(self, text: str) -> None:
        """The server says so once, in lower case by nats-py's doing, and answers nothing else."""
        for answer, subject, _ in list(self._waiting.values()):
            if f'"{subject.lower()}"' in text and not answer.done():
                answer.set_exception(BusError(f"{subject}: this user may not publish there ({text})"))

    def _tick(self) -> None:
        """Give up on what has waited for too long; the timer rests while nothing waits."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for token in [token for token, asked in self._waiting.items() if asked.until <= now]:
            give_up(self._waiting.pop(token).answer)
        self._timer = loop.call_later(TICK_S, self._tick) if self._waiting else None


def give_up(answer: Answer) -> None:
    if not answer.done():
        answer.set_result(None)
