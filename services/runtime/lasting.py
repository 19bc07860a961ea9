"""nats-py's client, which stays: no error of the server's ends a service.

Answers "what does a disconnect with an error mean?". It changes nothing else of nats-py.
"""

from __future__ import annotations

from nats.aio.client import Client
from nats.errors import Error as NatsError


class LastingClient(Client):
    """nats-py closes for good on any error that the server sends with a disconnect (a slow consumer, too long a line), except
    a stale connection. None of them ends a service: connect again. A refused password still does."""

    async def _process_err(self, err_msg: str) -> None:
        if "permissions violation" in err_msg or "authorization violation" in err_msg:
            await super()._process_err(err_msg)
        else:
            await self._process_op_err(NatsError(f"nats: {err_msg}"))
