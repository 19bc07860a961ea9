"""An attempt's part between the claim and its end: fetch the request, ask the backend, send the tokens, word the result.

Answers "what did this attempt come to?". Knows the bus only for the body and the tokens; the protocol
around it is not its business.
"""

from __future__ import annotations

import asyncio

import msgspec

from schemas.errors import BackendError, BusError, InvalidEvent
from schemas.events import Phase, TaskCompleted
from schemas.subjects import token_subject
from schemas.work import Answer, Body, TokenChunk, WorkItem, decode_wire, encode_wire
from services.runtime.answers import Answer as Reply
from services.runtime.bus import Bus
from services.runtime.clock import Clock
from services.runtime.ids import new_id
from services.worker.answer import Ran
from services.worker.attempts import Attempts, Key
from services.worker.backends.port import BackendRequest
from services.worker.completion import Context, completed
from services.worker.freshness import Freshness
from services.worker.inventory import Inventory
from services.worker.length import most_tokens
from services.worker.run import run_once
from services.worker.tokens import TokenSender
from services.worker.watchdogs import Limits


class Runs:
    """One per worker."""

    def __init__(
        self, attempts: Attempts, bus: Bus, inventory: Inventory, clock: Clock, limits: Limits, most_tokens: int
    ) -> None:
        self._attempts, self._bus, self._inventory, self._clock = attempts, bus, inventory, clock
        self._limits, self._most_tokens = limits, most_tokens
        self._freshness = Freshness()
        self._bodies: dict[Key, Reply | None] = {}

    def prefetch(self, item: WorkItem) -> None:
        """Read the request while its claim is on its way: a round trip less before the first token."""
        self._bodies[(item.task, item.attempt)] = self._bus.asking_last_for("TASKS", item.body)

    def forget(self, key: Key) -> None:
        """The attempt will not run, or has ended."""
        if (asked := self._bodies.pop(key, None)) is not None and not asked.cancel() and not asked.cancelled():
            asked.exception()  # nobody will ask for it any more, and that is no news

    async def make(self, context: Context) -> tuple[TaskCompleted, Answer]:
        """The end and the answer. Raises BackendError, classified; cancelling it closes the upstream stream.

        While a model is loaded an attempt that is not wanted any more goes on until the first token: closing it would abort the
        load, and impatient clients could keep a large model from ever being loaded (case 29)."""
        item = context.item
        if context.model is None:
            raise BackendError("rejected", f"this worker does not hold {item.model} any more")
        key = (item.task, item.attempt)
        body = await self._body(item, self._bodies[key])
        ran = await self._against_backend(key, context, body)
        self._inventory.mark_resident(item.model)
        stamp = msgspec.structs.replace(context.started, id=new_id(), at=self._clock.unix())
        is_new = self._freshness.is_new(item.model, body)
        return completed(context, stamp, ran, body, is_new_prompt=is_new)

    async def _against_backend(self, key: Key, context: Context, body: Body) -> Ran:
        item, model = context.item, context.model
        assert model is not None
        sender = TokenSender(*key, self._send_token)

        def on_phase(phase: Phase, tokens: int) -> None:
            self._attempts.progress(key, phase, tokens)
            if phase != "loading" and not self._attempts.wants_run(key) and (run := asyncio.current_task()) is not None:
                run.cancel()  # it was not wanted any more while the model was loaded

        limits = msgspec.structs.replace(self._limits, total_s=min(self._limits.total_s, item.timeout_s))
        asked = body if item.kind == "completion" else as_chat(body)
        request = BackendRequest(
            model=model.backend_name, body=asked, options=item.options,
            context=self._inventory.window(model.backend_name),
            most_tokens=most_tokens(self._most_tokens, model.context, asked),
        )  # fmt: skip
        try:
            return await run_once(
                self._inventory.backend, request, item.kind, limits, self._clock,
                was_resident=model.resident, on_piece=sender.add, on_phase=on_phase,
            )  # fmt: skip
        finally:
            await sender.close()

    async def _body(self, item: WorkItem, asked: Reply | None) -> Body:
        try:
            stored = await self._bus.last_for("TASKS", item.body, asked)
        except BusError as error:
            raise BackendError("disconnect", f"the request's body could not be read: {error}") from error
        if stored is None:
            raise BackendError(
                "rejected", f"the request's body {item.body} is gone: expired or purged", retryable=False
            )
        try:
            return decode_wire(stored.data, Body)
        except InvalidEvent as error:
            raise BackendError("rejected", str(error), retryable=False) from error

    async def _send_token(self, chunk: TokenChunk) -> bool:
        return await self._bus.send(token_subject(self._attempts.worker, chunk.task), encode_wire(chunk))


def as_chat(body: Body) -> Body:
    """A prompt that is no completion is a user's message: without the model's chat template it would only be continued."""
    if body.prompt is None or body.messages:
        return body
    return msgspec.structs.replace(body, prompt=None, messages=({"role": "user", "content": body.prompt},))
