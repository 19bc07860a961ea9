"""Who reads which task: tokens as they come, replayed for late readers, status changes, restarts and the end.

Answers "what does this reader get next?". Tokens are core messages and may get lost; a hole stops the live text of that attempt,
and the rest follows from the stored answer, so that a reader never sees a wrong text. It never talks to NATS.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import msgspec

from schemas.tool_calls import rest as rest_of_calls
from schemas.work import Answer, TokenChunk
from services.router.port import EndUpdate, RestartUpdate, StatusUpdate, TaskStatus, TokenUpdate, Update


@dataclass
class Channel:
    """One task's readers and what they would have seen. ``last_reader_left`` is when, on the heard clock."""

    attempt: int = 0
    tokens: list[TokenUpdate] = field(default_factory=list)
    broken: bool = False
    status: TaskStatus | None = None
    end: EndUpdate | None = None
    readers: set[asyncio.Queue[Update]] = field(default_factory=set)
    had_reader: bool = False
    last_reader_left: float | None = None

    def sent(self) -> tuple[str, str]:
        """(text, thinking) that readers have of this attempt."""
        return "".join(t.text for t in self.tokens), "".join(t.thinking for t in self.tokens)


class Channels:
    """All tasks that somebody may read here."""

    def __init__(self) -> None:
        self._channels: dict[str, Channel] = {}
        self._open: dict[str, Channel] = {}
        """Those without an end: the few that a pulse looks through."""
        self._ended: deque[tuple[float, str]] = deque()
        """The others, oldest first, each with when it may be looked at."""

    def open(self, task: str) -> Channel:
        channel = self._channels.get(task)
        if channel is None:
            channel = self._channels[task] = self._open[task] = Channel()
        return channel

    def get(self, task: str) -> Channel | None:
        return self._channels.get(task)

    def token(self, chunk: TokenChunk, worker: str) -> None:
        """A piece of an answer arrived from ``worker``."""
        channel = self._channels.get(chunk.task)
        if channel is None or channel.end is not None or chunk.attempt < channel.attempt:
            return
        if chunk.attempt > channel.attempt:
            self._restart(channel, chunk.attempt)
        self._started(channel, chunk.attempt, worker)
        if chunk.index < len(channel.tokens):
            return
        if channel.broken or chunk.index > len(channel.tokens):
            channel.broken = True
            return
        update = TokenUpdate(
            attempt=chunk.attempt,
            index=chunk.index,
            text=chunk.text,
            thinking=chunk.thinking,
            tool_calls=chunk.tool_calls,
            logprobs=chunk.logprobs,
        )
        channel.tokens.append(update)
        _tell(channel, update)

    def moved(self, status: TaskStatus) -> None:
        """The task's status changed; nothing is said twice."""
        channel = self._channels.get(status.task)
        if channel is None or channel.end is not None or channel.status == status:
            return
        channel.status = status
        _tell(channel, StatusUpdate(status=status))

    def ended(self, status: TaskStatus, answer: Answer | None, now: float) -> None:
        """The terminal fact. What readers lack of the answer comes first."""
        channel = self._channels.get(status.task)
        if channel is None or channel.end is not None:
            return
        if answer is not None:
            self._complete(channel, answer)
        channel.end = EndUpdate(status=status, answer=answer)
        del self._open[status.task]
        self._ended.append((now, status.task))
        _tell(channel, channel.end)

    def forget(self, now: float, after_s: float, is_open: Callable[[str], bool]) -> None:
        """Drop what has no reader and ended long ago, or was left long ago and is no open task (any more, or here)."""
        for task, channel in list(self._open.items()):
            left = channel.last_reader_left
            if left is not None and not channel.readers and now - left > after_s and not is_open(task):
                del self._channels[task], self._open[task]
        while self._ended and now - self._ended[0][0] > after_s:
            _, task = self._ended.popleft()
            kept = self._channels.get(task)
            if kept is None or kept.end is None:
                continue  # it was let go of, or is being looked up again
            if kept.readers:
                self._ended.append((now, task))
            else:
                del self._channels[task]

    def close(self, task: str) -> None:
        """Nobody has read it, and nothing is to be kept for anybody."""
        if task in self._open:
            del self._channels[task], self._open[task]

    def abandoned(self, now: float, grace_s: float) -> list[str]:
        """Tasks that had readers, have none since the grace time, and have not ended."""
        return [
            task
            for task, c in self._open.items()
            if c.had_reader and not c.readers and c.last_reader_left is not None and now - c.last_reader_left >= grace_s
        ]

    def waiting(self) -> list[str]:
        """Tasks with readers that have not started: their position and reason are worth telling."""
        return [
            task for task, c in self._open.items() if c.readers and (c.status is None or c.status.state != "running")
        ]

    async def read(self, queue: asyncio.Queue[Update]) -> AsyncIterator[Update]:
        """Everything so far, then what comes, to the end."""
        while True:
            update = await queue.get()
            yield update
            if isinstance(update, EndUpdate):
                return

    def join(self, task: str) -> tuple[Channel, asyncio.Queue[Update]]:
        """A new reader: its queue already holds what it missed."""
        channel = self.open(task)
        queue: asyncio.Queue[Update] = asyncio.Queue()
        if channel.status is not None:
            queue.put_nowait(StatusUpdate(status=channel.status))
        for token in channel.tokens:
            queue.put_nowait(token)
        if channel.end is not None:
            queue.put_nowait(channel.end)
        channel.readers.add(queue)
        channel.had_reader = True
        return channel, queue

    def leave(self, channel: Channel, queue: asyncio.Queue[Update], now: float) -> None:
        """Vectors are not kept for whoever comes late, who gets the stored ones: texts that are indexed leave 2 MB a request."""
        channel.readers.discard(queue)
        channel.last_reader_left = now
        end = channel.end
        if end is not None and end.answer is not None and end.answer.vectors and not channel.readers:
            self._channels.pop(end.status.task, None)

    def _started(self, channel: Channel, attempt: int, worker: str) -> None:
        """Who sends tokens has started, although its fact, which takes the way through the store, may come later."""
        status = channel.status
        if status is None or status.state not in ("waiting", "released"):
            return
        if attempt > status.attempt or (attempt == status.attempt and status.state == "released"):
            changes = {"state": "running", "attempt": attempt, "worker": worker}
            queued = {"position": None, "reason": None, "eta_s": None, "rises": ()}
            self.moved(msgspec.structs.replace(status, **changes, **queued))

    def _restart(self, channel: Channel, attempt: int, reason: str = "the machine that was answering was lost") -> None:
        if channel.tokens:
            _tell(channel, RestartUpdate(attempt=attempt, reason=reason))
        channel.attempt, channel.broken = attempt, False
        channel.tokens = []

    def _complete(self, channel: Channel, answer: Answer) -> None:
        if answer.attempt != channel.attempt:
            self._restart(channel, answer.attempt)
        text, thinking = channel.sent()
        if not (answer.text.startswith(text) and answer.thinking.startswith(thinking)):
            self._restart(channel, answer.attempt, "what was sent is not what was stored")
            text = thinking = ""
        calls = [call for token in channel.tokens for call in token.tool_calls]
        said = sum(len(token.logprobs) for token in channel.tokens)
        rest = TokenUpdate(
            attempt=answer.attempt,
            index=len(channel.tokens),
            text=answer.text[len(text) :],
            thinking=answer.thinking[len(thinking) :],
            tool_calls=rest_of_calls(calls, answer.tool_calls),
            logprobs=answer.logprobs[said:],
        )
        if rest.text or rest.thinking or rest.tool_calls:
            channel.tokens.append(rest)
            _tell(channel, rest)


def _tell(channel: Channel, update: Update) -> None:
    for queue in channel.readers:
        queue.put_nowait(update)
