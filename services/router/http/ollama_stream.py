"""How does a task become a reply in Ollama's form? Lines as they come, one object at the end, or an embedding's vectors.

Like Ollama, a stream sends no head before its first token, so that an error before it has its own status; only after a long
silence the head and empty lines leave, since proxies cut a silent connection.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import msgspec

from schemas.work import Answer
from services.router.http.chat_reply import Told
from services.router.http.headers import task_headers
from services.router.http.live import Line, Live, Timing
from services.router.http.missed import Had
from services.router.http.ollama_reply import Frames, figures, whole
from services.router.http.problems import NO_ANSWER, Problem, ollama_form, respond, restarted
from services.router.http.speaking import told_of
from services.router.http.windows import problem_in
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

NDJSON = {"content-type": "application/x-ndjson", "cache-control": "no-store", "x-accel-buffering": "no"}
BodyOf = Callable[[TaskStatus, Answer, Told], Any]


class OllamaLive(Live):
    """What all replies share: the headers, who answered, and errors in Ollama's form at each moment."""

    def __init__(self, router: RouterPort, submitted: Submitted, timing: Timing) -> None:
        super().__init__(router, submitted.task, msgspec.structs.replace(timing, hold_s=timing.keep_alive_s))
        self.submitted = submitted
        self.status: TaskStatus | None = None

    async def on_gone(self) -> None:
        """As Ollama: hanging up is Stop."""
        await self.router.give_up(self.task)

    async def on_update(self, line: Line, update: Update) -> bool:
        match update:
            case StatusUpdate(status=status):
                self.status = status
            case EndUpdate():
                self.status = update.status
                await self._on_end(line, update)
                return True
        return False

    @abstractmethod
    async def on_answer(self, line: Line, status: TaskStatus, answer: Answer) -> None: ...

    async def on_failure(self, line: Line, problem: Problem) -> None:
        if line.is_open:
            await line.write(msgspec.json.encode(ollama_form(problem)) + b"\n")
        else:
            response = respond(problem, form=ollama_form, headers=self.task_headers())
            await line.open(dict(response.headers), response.status_code)
            await line.write(bytes(response.body))
        await line.close()

    def task_headers(self) -> dict[str, str]:
        return task_headers(self.router, self.submitted, self.status)

    def told(self, status: TaskStatus, answer: Answer) -> Told:
        return told_of(self.router, self.submitted, status, answer)

    async def _on_end(self, line: Line, update: EndUpdate) -> None:
        problem, answer = problem_in(self.router.fleet, update.status), update.answer
        if problem is None and answer is None:
            answer = await self.router.answer(self.task)
        if problem is not None or answer is None:
            await self.on_failure(line, problem or NO_ANSWER)
        else:
            await self.on_answer(line, update.status, answer)


class OllamaWhole(OllamaLive):
    """One JSON object at the end. ``body_of`` makes it."""

    def __init__(self, router: RouterPort, submitted: Submitted, timing: Timing, body_of: BodyOf) -> None:
        super().__init__(router, submitted, timing)
        self._body_of = body_of

    async def on_answer(self, line: Line, status: TaskStatus, answer: Answer) -> None:
        body = msgspec.json.encode(self._body_of(status, answer, self.told(status, answer)))
        head = {"content-type": "application/json; charset=utf-8", "content-length": str(len(body))}
        await line.open({**self.task_headers(), **head})
        await line.write(body)
        await line.close()


class OllamaStream(OllamaLive):
    """Lines, as they come. ``named`` is the model as it was asked for, which Ollama repeats; None says who answers."""

    def __init__(
        self, router: RouterPort, submitted: Submitted, timing: Timing, named: str | None, *, chat: bool
    ) -> None:
        super().__init__(router, submitted, timing)
        self._named = named
        self._had = Had()
        choice = submitted.decision.choice if submitted.decision is not None else None
        self._frames = Frames(named or (choice.model if choice is not None else "auto"), chat=chat)

    def still_here(self) -> bytes:
        return self._frames.still_here()

    async def begin(self, line: Line) -> None:
        if await line.open({**self.task_headers(), **NDJSON}):
            await line.write(self._frames.still_here())

    async def on_update(self, line: Line, update: Update) -> bool:
        if type(update) is TokenUpdate:
            await self._on_token(line, update)
            return False
        if isinstance(update, StatusUpdate) and update.status.model is not None:
            self._say_model(update.status.model)
        if isinstance(update, RestartUpdate) and self._had.any:
            await self.on_failure(line, restarted(update.reason))
            return True
        return await super().on_update(line, update)

    async def _on_token(self, line: Line, update: TokenUpdate) -> None:
        if not line.is_open:
            await line.open({**self.task_headers(), **NDJSON})
        self._had.add(update)
        if data := self._frames.token(update):
            await line.write(data)

    async def on_answer(self, line: Line, status: TaskStatus, answer: Answer) -> None:
        self._say_model(answer.model)
        if (missed := self._had.missed(status.attempt, answer)) is not None:
            await self._on_token(line, missed)
        await line.write(self._frames.end(status, answer, self.told(status, answer)))
        await line.close()

    def _say_model(self, model: str) -> None:
        if self._named is None and not self._had.any and model != self._frames.model:
            self._frames.set_model(model)


def whole_body(named: str | None, *, chat: bool) -> BodyOf:
    def body(status: TaskStatus, answer: Answer, told: Told) -> Any:
        return whole(named or answer.model, status, answer, told, chat=chat)

    return body


def embed_body(model: str, dimensions: int | None) -> BodyOf:
    def body(status: TaskStatus, answer: Answer, told: Told) -> Any:
        numbers = figures(status.times, answer.tokens)
        kept = ("total_duration", "load_duration", "prompt_eval_count")
        vectors = [_cut(vector, dimensions) for vector in answer.vectors]
        return {"model": model, "embeddings": vectors, **{name: numbers[name] for name in kept if name in numbers}}

    return body


def embedding_body(_status: TaskStatus, answer: Answer, _told: Told) -> Any:
    return {"embedding": answer.vectors[0] if answer.vectors else ()}


def _cut(vector: tuple[float, ...], dimensions: int | None) -> tuple[float, ...]:
    """The first numbers alone, of length one again, where the backend did not do it."""
    if dimensions is None or not 0 < dimensions < len(vector):
        return vector
    short = vector[:dimensions]
    length = math.sqrt(sum(x * x for x in short))
    return tuple(x / length for x in short) if length else short
