"""The OpenAI-compatible surface: ``/v1/models`` and ``/v1/chat/completions`` (docs/http.md, "OpenAI")."""

from __future__ import annotations

import time

import msgspec
from fastapi import APIRouter, Request
from starlette.responses import Response

from schemas.work import Answer
from services.router.http.chat_reply import DONE, Chunks, Told, completion, error_chunk, finish_reason
from services.router.http.chat_request import chat_task
from services.router.http.headers import task_headers, worker_name
from services.router.http.live import SSE_HEADERS, Line, Live, Timing
from services.router.http.problems import Problem, problem_of_end, respond
from services.router.http.reading import read_json
from services.router.http.replies import Json
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

NO_ANSWER = Problem(
    status=502, code="answer_lost", message="the task completed, but its answer could not be read; send it again"
)


def openai_routes(router: RouterPort, timing: Timing) -> APIRouter:
    routes = APIRouter()
    started_at = int(time.time())

    @routes.get("/v1/models")
    async def models() -> Response:
        names = dict.fromkeys((*router.routes().routes.names, *router.fleet().models()))
        rows = [{"id": name, "object": "model", "created": started_at, "owned_by": "headrace"} for name in names]
        return Json({"object": "list", "data": rows})

    @routes.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        asked, task = chat_task(await read_json(request), request.headers, router.fleet())
        submitted = await router.submit(task)
        if asked.stream:
            return ChatStream(router, submitted, timing, usage=asked.wants_usage)
        return ChatWhole(router, submitted, timing)

    return routes


class Chat(Live):
    """What a streamed and a whole answer share: the last status, and the words about it."""

    def __init__(self, router: RouterPort, submitted: Submitted, timing: Timing) -> None:
        super().__init__(router, submitted.task, timing)
        self.submitted = submitted
        self.status: TaskStatus | None = None
        self.created = int(time.time())

    def task_headers(self) -> dict[str, str]:
        return task_headers(self.router, self.submitted, self.status)

    def told(self, status: TaskStatus, answer: Answer | None) -> Told:
        worker = answer.worker if answer is not None else status.worker
        return Told(
            task=self.task,
            domain=status.domain or self.submitted.domain.label,
            model=answer.model if answer is not None else status.model,
            worker=worker,
            worker_name=worker_name(self.router, worker),
            reason=status.choice.reason if status.choice is not None else None,
            attempt=status.attempt,
            outcome=status.outcome,
        )

    async def on_failure(self, line: Line, problem: Problem) -> None:
        """Before anything was sent an error has its own status, afterwards it is the stream's last chunk."""
        if line.is_open:
            await line.write(error_chunk(problem) + DONE)
        else:
            response = respond(problem, openai=True, headers=self.task_headers())
            await line.open(dict(response.headers), problem.status)
            await line.write(bytes(response.body))
        await line.close()


class ChatWhole(Chat):
    """Without ``stream``: one reply at the end, with the status that the end deserves."""

    async def on_update(self, line: Line, update: Update) -> bool:
        if not isinstance(update, EndUpdate):
            return False
        self.status = update.status
        problem = problem_of_end(update.status)
        answer = update.answer
        if problem is None and answer is None:
            answer = await self.router.answer(self.task)
        if problem is not None or answer is None:
            await self.on_failure(line, problem or NO_ANSWER)
            return True
        body = msgspec.json.encode(completion(answer, self.created, self.told(update.status, answer)))
        await line.open({**self.task_headers(), "content-type": "application/json", "content-length": str(len(body))})
        await line.write(body)
        await line.close()
        return True


class ChatStream(Chat):
    """With ``stream``: headers when the task has started or after the hold, then chunks, then ``[DONE]``."""

    def __init__(self, router: RouterPort, submitted: Submitted, timing: Timing, *, usage: bool) -> None:
        super().__init__(router, submitted, timing)
        self.usage = usage
        choice = submitted.decision.choice if submitted.decision is not None else None
        self.chunks = Chunks(self.task, self.created, choice.model if choice is not None else AUTO)
        self.sent_chars = 0
        self.sent_any = False

    async def on_hold_over(self, line: Line) -> None:
        await line.open({**self.task_headers(), **SSE_HEADERS})

    async def on_update(self, line: Line, update: Update) -> bool:
        if type(update) is TokenUpdate:
            if not line.is_open:
                await self.on_hold_over(line)
            self.sent_any = True
            self.sent_chars += len(update.text)
            await line.write(self.chunks.token(update))
            return False
        match update:
            case StatusUpdate(status=status):
                await self._on_status(line, status)
            case RestartUpdate() if self.sent_any:
                await self.on_failure(line, restarted(update))
                return True
            case EndUpdate():
                await self._on_end(line, update)
                return True
        return False

    async def _on_status(self, line: Line, status: TaskStatus) -> None:
        self.status = status
        if status.model is not None and not self.sent_any:
            self.chunks.set_model(status.model)
        if status.state == "running":
            await self.on_hold_over(line)

    async def _on_end(self, line: Line, update: EndUpdate) -> None:
        self.status = update.status
        problem = problem_of_end(update.status)
        if problem is not None:
            await self.on_failure(line, problem)
            return
        await self.on_hold_over(line)
        answer = update.answer
        if answer is not None and not self.sent_any:
            self.chunks.set_model(answer.model)
        for rest in self._unsent(update.status.attempt, answer):
            await line.write(self.chunks.token(rest))
        reason = finish_reason(answer) if answer is not None else update.status.finish_reason or "stop"
        last = [self.chunks.finish(reason, self.told(update.status, answer))]
        if self.usage:
            last.append(self.chunks.usage(answer.tokens if answer is not None else update.status.tokens))
        await line.write(b"".join((*last, DONE)))
        await line.close()

    def _unsent(self, attempt: int, answer: Answer | None) -> tuple[TokenUpdate, ...]:
        """Tokens are not stored and may be missed; the stored answer has them all. An empty answer still needs its role."""
        if answer is None:
            return ()
        rest = answer.text[self.sent_chars :]
        if self.sent_any:
            return (TokenUpdate(attempt=attempt, index=0, text=rest),) if rest else ()
        whole = TokenUpdate(attempt=attempt, index=0, text=rest, thinking=answer.thinking, tool_calls=answer.tool_calls)
        return (whole,)


def restarted(update: RestartUpdate) -> Problem:
    return Problem(
        status=502,
        code="restarted",
        message=f"the answer broke off ({update.reason}) and was begun again; this protocol cannot take text back: send it again",
    )
