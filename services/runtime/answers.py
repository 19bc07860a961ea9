"""Questions on their way, and the answers that come back to one inbox.

Answers "whose is this reply?". It sends nothing and waits for nothing by itself; the connection does.
"""

from __future__ import annotations

import asyncio

from schemas.errors import BusError
from services.runtime.wire import Arrived

Answer = asyncio.Future[Arrived | None]
"""None: no answer to this try (the time is over, or the connection was lost); ask again."""


class Answers:
    """One per connection. A token stays the same over all tries of a question: any answer to any of them will do."""

    def __init__(self) -> None:
        self.inbox = ""
        self._waiting: dict[str, tuple[Answer, str]] = {}
        self._count = 0

    def token(self) -> str:
        self._count += 1
        return str(self._count)

    def reply(self, token: str) -> str:
        """The reply subject that brings the answer here."""
        return f"{self.inbox}.{token}"

    def expect(self, token: str, subject: str) -> Answer:
        """``subject`` is where the question goes: the server names it when it denies the right to ask."""
        answer: Answer = asyncio.get_running_loop().create_future()
        self._waiting[token] = (answer, subject)
        return answer

    def forget(self, token: str) -> None:
        self._waiting.pop(token, None)

    def arrived(self, message: Arrived) -> None:
        entry = self._waiting.get(message.subject.rpartition(b".")[2].decode())
        if entry is not None and not entry[0].done():
            entry[0].set_result(message)

    def lost(self) -> None:
        """The connection is gone, and with it every answer that was on its way."""
        for answer, _ in list(self._waiting.values()):
            give_up(answer)

    def denied(self, text: str) -> None:
        """The server says so once, in lower case by nats-py's doing, and answers nothing else."""
        for answer, subject in list(self._waiting.values()):
            if f'"{subject.lower()}"' in text and not answer.done():
                answer.set_exception(BusError(f"{subject}: this user may not publish there ({text})"))


async def within(timeout_s: float, answer: Answer) -> Arrived | None:
    """A timer on the future itself: ``asyncio.timeout`` and ``asyncio.wait`` cost as much as the publish."""
    timer = asyncio.get_running_loop().call_later(timeout_s, give_up, answer)
    try:
        return await answer
    finally:
        timer.cancel()


def give_up(answer: Answer) -> None:
    if not answer.done():
        answer.set_result(None)
