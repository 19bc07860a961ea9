"""Downloads of models that an admin asked for: one at a time, with progress for whoever reads.

Answers "how far is it?" on a core subject. It never begins one by itself, and ends it as soon as its reader has gone.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from typing import Protocol

from schemas.errors import BackendError, NoSuchModel
from schemas.subjects import pull_subject
from schemas.work import Control, PullFault, PullProgress, encode_wire
from services.runtime.logs import logger
from services.worker.backends.port import Backend, Pulled, Puller

log = logger("worker")

BEAT_S = 2.0
"""Between two words at most, while it lasts: five missing ones mean that the machine is gone."""
LEAST_S = 0.1
"""Between two words about one file: Ollama says hundreds in a second."""


class Sender(Protocol):
    async def send(self, subject: str, data: bytes) -> bool: ...


class Pulling:
    """``pulled`` is called when a model has come."""

    def __init__(self, sender: Sender, backend: Backend, worker: str, *, pulled: PulledModel) -> None:
        self._sender, self._backend, self._worker, self._pulled = sender, backend, worker, pulled
        self._running: asyncio.Task[None] | None = None
        self._name, self._model = "", ""
        self._refusals: set[asyncio.Task[None]] = set()

    def told(self, control: Control) -> None:
        if control.pull is None:
            return
        if control.command == "stop_pull":
            if self._running is not None and control.pull == self._name:
                self._running.cancel()
        elif control.command == "pull" and control.model:
            self._begin(control.pull, control.model)

    async def close(self) -> None:
        tasks = {task for task in (self._running, *self._refusals) if task is not None}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _begin(self, name: str, model: str) -> None:
        if self._running is not None and not self._running.done():
            words = f"this machine is downloading {self._model} already, and does one at a time; try again when that is done"
            refusal = asyncio.create_task(self._say(name, PullProgress(error=words, code="unavailable")))
            self._refusals.add(refusal)
            refusal.add_done_callback(self._refusals.discard)
            return
        self._name, self._model = name, model
        self._running = asyncio.create_task(self._pull(name, model))

    async def _pull(self, name: str, model: str) -> None:
        if not isinstance(self._backend, Puller):
            words = f"the {self._backend.kind} beside this worker cannot fetch models; put the file there by hand"
            await self._say(name, PullProgress(error=words, code="rejected"))
            return
        log.info("downloading", action="pull_started", model=model)
        last = _Last()
        beating = asyncio.create_task(self._beat(name, last))
        try:
            async with aclosing(self._backend.pull(model)) as said:
                async for word in said:
                    if last.is_news(word, asyncio.get_running_loop().time()):
                        await self._say(name, last.word)
            end = PullProgress(status="success", done=True)
            log.info("downloaded", action="pulled", model=model)
            self._pulled()
        except BackendError as error:
            end = PullProgress(error=error.detail or str(error), code=_fault(error))
            log.warning("download failed", action="pull_failed", model=model, error=str(error))
        finally:
            beating.cancel()
            with suppress(asyncio.CancelledError):
                await beating
        await self._say(name, end)

    async def _beat(self, name: str, last: _Last) -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            await self._say(name, last.word)

    async def _say(self, name: str, word: PullProgress) -> None:
        await self._sender.send(pull_subject(self._worker, name), encode_wire(word))


def _fault(error: BackendError) -> PullFault:
    if isinstance(error, NoSuchModel):
        return "not_found"
    return "rejected" if error.failure == "rejected" else "unavailable"


class PulledModel(Protocol):
    def __call__(self) -> None: ...


class _Last:
    """The last word, for the beat; and whether another is worth saying."""

    def __init__(self) -> None:
        self.word = PullProgress(status="asking the model server")
        self._said_at = float("-inf")

    def is_news(self, word: Pulled, now: float) -> bool:
        """Another status, another file, a file's end, or a moment later. The word is kept in any case."""
        before = self.word
        self.word = PullProgress(status=word.status, digest=word.digest, total=word.total, completed=word.completed)
        is_other = (before.status, before.digest) != (word.status, word.digest)
        is_end = word.total is not None and word.completed == word.total and before.completed != word.completed
        if is_other or is_end or now - self._said_at >= LEAST_S:
            self._said_at = now
            return True
        return False
