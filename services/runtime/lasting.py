"""nats-py's client, which stays until it is closed: no error of the server's ends a service, and no end leaves one behind.

Answers "what does a disconnect with an error mean?", and "is it over?". It changes nothing else of nats-py.
"""

from __future__ import annotations

import asyncio

from nats.aio.client import Client
from nats.errors import Error as NatsError

AGAIN_S = 0.05
"""A cancel that is not lost is over within a turn of the loop."""


class LastingClient(Client):
    """nats-py closes for good on any error that the server sends with a disconnect (a slow consumer, too long a line), except
    a stale connection. None of them ends a service: connect again. A refused password still does.

    It also connects inside ``asyncio.wait_for``, which up to Python 3.11 loses a cancel that comes with a refusal: a client that
    was closed while its server was away then went on trying for ever."""

    async def _process_err(self, err_msg: str) -> None:
        if "permissions violation" in err_msg or "authorization violation" in err_msg:
            await super()._process_err(err_msg)
        else:
            await self._process_op_err(NatsError(f"nats: {err_msg}"))

    async def _close(self, status: int, do_cbs: bool = True) -> None:
        reconnecting = self._reconnection_task
        while reconnecting is not None and reconnecting is not asyncio.current_task() and not reconnecting.done():
            reconnecting.cancel()
            await asyncio.wait([reconnecting], timeout=AGAIN_S)
        await super()._close(status, do_cbs)
