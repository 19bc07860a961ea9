"""nats-py's client on a real nats-server that goes away."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from services.runtime.lasting import LastingClient
from services.runtime.server import EmbeddedServer


async def test_a_client_that_is_closed_at_the_very_moment_of_a_refusal_does_not_go_on_trying(
    natsd: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to Python 3.11 ``wait_for`` loses a cancel that finds its inner task ended and not yet told."""
    client, refused, connect = LastingClient(), asyncio.Event(), asyncio.open_connection

    async def telling(*args: Any, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            return await connect(*args, **options)
        except OSError:
            asyncio.get_running_loop().call_soon(refused.set)
            raise

    async def heard(_error: Exception) -> None:
        """Each refusal."""

    await client.connect(natsd.url, error_cb=heard, max_reconnect_attempts=-1, reconnect_time_wait=1)
    monkeypatch.setattr(asyncio, "open_connection", telling)
    await natsd.kill()
    await refused.wait()
    reconnecting = client._reconnection_task
    await client.close()
    assert reconnecting is not None and reconnecting.done()
    assert client.is_closed
