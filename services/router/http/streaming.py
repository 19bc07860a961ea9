"""One task, or several side by side, as a stream: when headers leave, what was sent, what a reader still lacks at the end.

What the bytes say is the ``Speech``'s, one for each answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from schemas.events import Tokens
from schemas.work import Answer
from services.router.http.chat_reply import Told
from services.router.http.live import SSE_HEADERS, Line, Timing
from services.router.http.missed import Had
from services.router.http.problems import Form, Problem, openai_form, restarted
from services.router.http.speaking import Broken, Talk, summed
from services.router.http.windows import problem_in
from services.router.policy.routes import AUTO
from services.router.port import (
    EndUpdate,
    RestartUpdate,
    RouterPort,
    StatusUpdate,
    Submitted,
    TaskStatus,
    TokenUpdate,
    Update,
)


class Speech(Protocol):
    """One answer's bytes. ``end`` closes the answer, ``tail`` the whole stream after all answers; usage is theirs together."""

    def set_model(self, model: str) -> None: ...

    def begin(self) -> bytes: ...

    def moved(self, status: TaskStatus) -> bytes: ...

    def token(self, update: TokenUpdate) -> bytes: ...

    def end(self, answer: Answer | None, reason: str | None, told: Told) -> bytes: ...

    def tail(self, tokens: Tokens | None) -> bytes: ...

    def error(self, problem: Problem) -> bytes: ...


class Streamed(Talk):
    """Headers with the first piece or after the hold, then pieces as they come, then the tail. A backend refuses a request at
    once if at all, and until then its refusal has a status of its own. ``early``: headers at the start, for who shows it.
    ``choices``: how many tasks in a row have the same prompt."""

    def __init__(
        self,
        router: RouterPort,
        submitted: Sequence[Submitted],
        timing: Timing,
        speeches: Sequence[Speech],
        *,
        form: Form = openai_form,
        early: bool = False,
        choices: int = 1,
    ) -> None:
        super().__init__(router, submitted, timing, form=form)
        self.early, self.choices = early, choices
        self.voices = [_Voice(speech) for speech in speeches]
        for voice, one in zip(self.voices, submitted, strict=True):
            choice = one.decision.choice if one.decision is not None else None
            voice.speech.set_model(choice.model if choice is not None else AUTO)

    async def begin(self, line: Line) -> None:
        if not await line.open({**self.reply_headers(), **SSE_HEADERS}):
            return
        beginning = b"".join(voice.begin() for voice in self.voices)
        if beginning:
            await line.write(beginning)

    async def on_update(self, line: Line, at: int, update: Update) -> bool:
        voice = self.voices[at]
        if type(update) is TokenUpdate:
            if not line.is_open:
                await self.begin(line)
            voice.had.add(update)
            await line.write(voice.speech.token(update))
            return False
        match update:
            case StatusUpdate(status=status):
                await self._on_status(line, at, status)
            case RestartUpdate() if voice.had.any:
                raise Broken(restarted(update.reason))
            case EndUpdate():
                await self._on_end(line, at, update)
                return True
        return False

    async def _on_status(self, line: Line, at: int, status: TaskStatus) -> None:
        voice = self.voices[at]
        voice.status = status
        if at == 0:
            self.status = status
        if status.model is not None and not voice.had.any:
            voice.speech.set_model(status.model)
        if self.early and status.state == "running":
            await self.begin(line)
        if line.is_open and (words := voice.speech.moved(status)):
            await line.write(words)

    async def _on_end(self, line: Line, at: int, update: EndUpdate) -> None:
        voice, answer = self.voices[at], update.answer
        if at == 0:
            self.status = update.status
        if (problem := problem_in(self.router.fleet, update.status)) is not None:
            raise Broken(problem)
        if answer is not None and not voice.had.any:
            voice.speech.set_model(answer.model)
        await self.begin(line)
        missed = voice.had.missed(update.status.attempt, answer) if answer is not None else None
        if missed is not None:
            await line.write(voice.speech.token(missed))
        voice.tokens = answer.tokens if answer is not None else update.status.tokens
        told = self.told(at, update.status, answer)
        await line.write(voice.speech.end(answer, update.status.finish_reason, told))

    async def on_all_ended(self, line: Line) -> None:
        tail = self.voices[0].speech.tail(summed([voice.tokens for voice in self.voices], self.choices))
        if tail:
            await line.write(tail)
        await line.close()

    def last_word(self, problem: Problem) -> bytes:
        return self.voices[0].speech.error(problem)


class _Voice:
    """One task of a stream: what was sent of it."""

    def __init__(self, speech: Speech) -> None:
        self.speech = speech
        self.had = Had()
        self.status: TaskStatus | None = None
        self.tokens: Tokens | None = None

    def begin(self) -> bytes:
        said = self.speech.begin()
        return said + self.speech.moved(self.status) if self.status is not None else said
