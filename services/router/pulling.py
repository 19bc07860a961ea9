"""The part of the router's port that has a machine fetch a model: it passes the wish on and brings back what the worker says.

Answers "how far is it?" by listening; the router itself keeps nothing of it, and fetches nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from nats.aio.msg import Msg

from schemas.subjects import control_subject, pull_subject
from schemas.work import Control, PullProgress, decode_wire, encode_wire
from services.runtime.bus import Bus

SILENCE_S = 10.0
"""A worker says something every two seconds."""


class Pulling:
    _bus: Bus
    _router: str
    _new_id: Callable[[], str]

    @asynccontextmanager
    async def pull(self, worker: str, model: str) -> AsyncIterator[AsyncIterator[PullProgress]]:
        name, heard = self._new_id(), asyncio.Queue[PullProgress]()

        def word(message: Msg) -> None:
            heard.put_nowait(decode_wire(message.data, PullProgress))

        listening = await self._bus.listen(pull_subject(worker, name), word)
        try:
            await self._bus.fence()  # from here on no word is missed
            await self._tell(worker, Control(command="pull", router=self._router, pull=name, model=model))
            yield words(heard)
        finally:
            await listening.stop()
            await self._tell(worker, Control(command="stop_pull", router=self._router, pull=name))

    async def _tell(self, worker: str, control: Control) -> None:
        await self._bus.send(control_subject(worker), encode_wire(control))


async def words(heard: asyncio.Queue[PullProgress], silence_s: float = SILENCE_S) -> AsyncIterator[PullProgress]:
    """Nothing twice, to the last word; silence is the last word too."""
    last: PullProgress | None = None
    while True:
        try:
            async with asyncio.timeout(silence_s):
                word = await heard.get()
        except TimeoutError:
            lost = f"nothing was heard of the machine for {silence_s:.0f} s; it may be gone, or too old to fetch models"
            word = PullProgress(error=lost, code="unavailable")
        if word != last:
            yield word
        last = word
        if word.done or word.error is not None:
            return
