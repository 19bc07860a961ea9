"""How does one task, or several side by side, become one reply? Whole or streamed, in whatever form the surface gives it.

Answers when headers leave, what ends the reply and how a failure looks at each moment; what the bytes say is the ``Speech``'s.
"""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from schemas.errors import HeadraceError
from schemas.events import Tokens
from schemas.work import Answer
from services.router.http.chat_reply import Told
from services.router.http.headers import task_headers, worker_name
from services.router.http.live import STOPPED, Lasting, Line, Timing
from services.router.http.problems import NO_ANSWER, Form, Problem, openai_form, respond
from services.router.http.windows import problem_in
from services.router.port import (
    EndUpdate,
    RouterPort,
    Submitted,
    TaskStatus,
    Update,
)


class Broken(Exception):
    """A task of the reply did not end well."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


class Talk(Lasting):
    """What streamed and whole replies share: following each task, the headers, and failures in the surface's form."""

    def __init__(
        self, router: RouterPort, submitted: Sequence[Submitted], timing: Timing, *, form: Form = openai_form
    ) -> None:
        super().__init__(router, timing)
        self.submitted, self.form = submitted, form
        self.status: TaskStatus | None = None
        self.created = now_s()

    @property
    def task(self) -> str:
        """The reply is called by its first task."""
        return self.submitted[0].task

    @abstractmethod
    async def on_update(self, line: Line, at: int, update: Update) -> bool:
        """``at`` is the place of the task among ``submitted``; True at its end. Raises Broken."""

    @abstractmethod
    async def on_all_ended(self, line: Line) -> None: ...

    async def follow(self, line: Line) -> None:
        try:
            if len(self.submitted) == 1:
                await self._follow_one(line, 0)
            else:
                await self._follow_all(line)
        except Broken as error:
            await self.on_failure(line, error.problem)
            return
        await self.on_all_ended(line)

    async def on_gone(self) -> None:
        """These APIs have no way back to an answer: hanging up is their word for Stop (case 41)."""
        for one in self.submitted:
            await self.router.give_up(one.task)

    async def _follow_one(self, line: Line, at: int) -> None:
        async with self.router.follow(self.submitted[at].task) as updates:
            async for update in updates:
                if await self.on_update(line, at, update):
                    return
        raise Broken(STOPPED)

    async def _follow_all(self, line: Line) -> None:
        """The first that breaks ends them all."""
        following = [asyncio.ensure_future(self._follow_one(line, at)) for at in range(len(self.submitted))]
        try:
            await asyncio.gather(*following)
        except Broken:
            await cancel_all(self.router, self.submitted)
            raise
        finally:
            for each in following:
                each.cancel()
            await asyncio.gather(*following, return_exceptions=True)

    def reply_headers(self) -> dict[str, str]:
        return {
            **task_headers(self.router, self.submitted[0], self.status),
            "x-request-id": self.task,
            "request-id": self.task,
        }

    def told(self, at: int, status: TaskStatus, answer: Answer | None) -> Told:
        return told_of(self.router, self.submitted[at], status, answer)

    async def on_failure(self, line: Line, problem: Problem) -> None:
        """Before anything was sent an error has its own status, afterwards it is the stream's last word."""
        if line.is_open:
            await line.write(self.last_word(problem))
        else:
            response = respond(problem, form=self.form, headers=self.reply_headers())
            await line.open(dict(response.headers), problem.status)
            await line.write(bytes(response.body))
        await line.close()

    def last_word(self, problem: Problem) -> bytes:
        return b""


class Whole(Talk):
    """One reply at the end, with the status that the end deserves. ``body_of`` makes its body of the answers in their order."""

    def __init__(
        self,
        router: RouterPort,
        submitted: Sequence[Submitted],
        timing: Timing,
        body_of: Callable[[Sequence[Answer], int, Told], Any],
        *,
        form: Form = openai_form,
    ) -> None:
        super().__init__(router, submitted, timing, form=form)
        self.body_of = body_of
        self.answers: dict[int, Answer] = {}
        self.ends: dict[int, TaskStatus] = {}

    async def on_update(self, line: Line, at: int, update: Update) -> bool:
        if not isinstance(update, EndUpdate):
            return False
        if at == 0:
            self.status = update.status
        problem, answer = problem_in(self.router.fleet, update.status), update.answer
        if problem is None and answer is None:
            answer = await self.router.answer(self.submitted[at].task)
        if problem is not None or answer is None:
            raise Broken(problem or NO_ANSWER)
        self.answers[at], self.ends[at] = answer, update.status
        return True

    async def on_all_ended(self, line: Line) -> None:
        answers = [self.answers[at] for at in range(len(self.submitted))]
        body = msgspec.json.encode(self.body_of(answers, self.created, self.told(0, self.ends[0], answers[0])))
        await line.open({**self.reply_headers(), "content-type": "application/json", "content-length": str(len(body))})
        await line.write(body)
        await line.close()


def now_s() -> int:
    """Unix seconds, for ``created`` fields only."""
    return int(time.time())


async def cancel_all(router: RouterPort, submitted: Sequence[Submitted]) -> None:
    """One of them failed, and nobody reads the others."""
    for one in submitted:
        with suppress(HeadraceError):
            await router.cancel(one.task, "another part of the same request failed")


def summed(counts: Sequence[Tokens | None], choices: int = 1) -> Tokens | None:
    """Unknown where one is unknown. So many ``choices`` in a row have one prompt, which counts once, as OpenAI counts it."""
    known = [count for count in counts if count is not None]
    if len(known) != len(counts) or not known:
        return None

    def total(values: list[int | None]) -> int | None:
        return None if any(value is None for value in values) else sum(value for value in values if value is not None)

    return Tokens(
        prompt=total([each.prompt for each in known[::choices]]),
        cached=total([each.cached for each in known[::choices]]),
        output=total([each.output for each in known]),
        thinking=total([each.thinking for each in known]),
    )


def told_of(router: RouterPort, submitted: Submitted, status: TaskStatus, answer: Answer | None) -> Told:
    """Who really answered, and why."""
    worker = answer.worker if answer is not None else status.worker
    return Told(
        task=submitted.task,
        domain=status.domain or submitted.domain.label,
        model=answer.model if answer is not None else status.model,
        worker=worker,
        worker_name=worker_name(router, worker),
        reason=status.choice.reason if status.choice is not None else None,
        attempt=status.attempt,
        outcome=status.outcome,
    )
