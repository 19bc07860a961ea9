"""uvicorn as a part of the process: it listens, it stops when told, it leaves signals to the process's own lifecycle."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn
from fastapi import FastAPI

from schemas.errors import SettingsError
from services.router.http.patience import Patient

KEEP_CONNECTION_S = 75
"""Longer than the usual 60 s of proxies and client pools, so that they close first: the other way round a request is lost."""


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        finally:
            self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would take SIGTERM away from services.runtime.lifecycle."""
        yield


@contextlib.asynccontextmanager
async def serving(app: FastAPI, host: str, port: int, *, drain_s: int = 5) -> AsyncIterator[str]:
    """Listens while the block runs; gives the base URL (port 0 picks a free one). Streams get ``drain_s`` to end; those
    that would not, ``app.state.before_stop`` ends.

    Raises SettingsError where the address is taken.
    """
    config = uvicorn.Config(
        app,
        http=Patient,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_keep_alive=KEEP_CONNECTION_S,
        timeout_graceful_shutdown=drain_s,
    )
    listening = listen(host, port)
    server = _Server(config)
    running = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        await server.listening.wait()
        shown = f"[{host}]" if ":" in host else host
        yield f"http://{shown}:{listening.getsockname()[1]}"
    finally:
        if (before_stop := getattr(app.state, "before_stop", None)) is not None:
            await before_stop()
        server.should_exit = True
        await running
        listening.close()


def listen(host: str, port: int) -> socket.socket:
    """A bound socket. Raises SettingsError where the address cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only where the protocol is named; without it each second token waits 40 ms for an ACK.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise SettingsError(
            f"router.host {host!r}, router.port {port}: cannot listen ({error.strerror}); "
            "is another router running? Choose another port with --port or HEADRACE_ROUTER_PORT"
        ) from error
    return listening
