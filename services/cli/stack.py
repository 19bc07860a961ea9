"""One whole Headrace on this machine, as one thing that starts and stops: NATS, router, projector, benchmarker, workers.

Answers "how do the parts come up together, and go down together?". Both ``up`` and the demo are this; nothing may run after it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterable, Sequence
from itertools import chain, repeat
from pathlib import Path

from schemas.errors import ServerError
from services.cli.exits import CommandFailed
from services.cli.parts import (
    BackendAt,
    Surroundings,
    benchmarker_part,
    projector_part,
    router_part,
    url_here,
    worker_part,
)
from services.cli.supervision import BACKOFF_S, Child, Say, Supervisor
from services.runtime.bus import Bus
from services.runtime.provision import provision
from services.runtime.server import LOOPBACK, EmbeddedServer, Sync
from services.runtime.settings import load

NATS_POLL_S = 0.2
"""Costs nothing, and is short beside the 30 s for which the parts repeat what was not acknowledged."""


class Stack:
    """``async with Stack(data, backends=[…]) as stack: stack.router_url``. ``router_port`` 0 takes a free one. Without
    ``benchmarker`` nothing but what is asked for ever runs. With ``nats_secret`` workers of other machines may join by it."""

    def __init__(
        self,
        data: Path,
        *,
        backends: Sequence[BackendAt] = (),
        sync: Sync = "always",
        router_port: int = 0,
        router_host: str = LOOPBACK,
        nats_host: str = LOOPBACK,
        nats_port: int = -1,
        nats_secret: str | None = None,
        config: Path | None = None,
        restart: bool = True,
        benchmarker: bool = False,
        say: Say = lambda _line: None,
    ) -> None:
        self.nats = EmbeddedServer(data, sync=sync, port=nats_port, host=nats_host, secret=nats_secret)
        self.supervisor = Supervisor(say, restart=restart)
        self.router_url = url_here(router_host, router_port or free_port())
        self._router_host = router_host
        self._data = data
        self._backends = backends
        self._config = config
        self._say = say
        self._restart = restart
        self._benchmarker = benchmarker
        self._nats_watcher: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Stack:
        try:
            await self.start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    @property
    def nats_url(self) -> str:
        return self.nats.url

    def worker(self, name: str) -> Child:
        return self.supervisor.children[f"worker {name}"]

    async def join(self, backends: Iterable[BackendAt]) -> None:
        """Put a worker beside each; returns when the router hears them."""
        around = self._surroundings()
        await self.supervisor.start([worker_part(around, backend) for backend in backends])

    async def join_later(self, backend: BackendAt) -> None:
        """A worker for a model server that was found while everything runs; what goes wrong with it is said."""
        await self.supervisor.add(worker_part(self._surroundings(), backend))

    async def stop(self) -> None:
        """Workers drain while the router still serves, then router and projector, then NATS."""
        if self._nats_watcher is not None:
            self._nats_watcher.cancel()
        await self.supervisor.stop()
        await self.nats.stop()

    async def take_data(self) -> None:
        """NATS, whose lock says that nobody else runs on these data; raises CommandFailed where somebody does. Not twice."""
        if self.nats.process is not None and self.nats.process.poll() is None:
            return
        try:
            await self.nats.start()
        except ServerError as error:
            raise CommandFailed(str(error)) from error

    async def start(self) -> None:
        await self.take_data()
        settings = load(self._config, os.environ)
        async with await Bus.connect(self.nats.url, name="up", user=self.nats.user, password=self.nats.password) as bus:
            await provision(bus, keep_s=settings.privacy.keep_s)  # as the router will
        self._say(f"nats ready: {self.nats.url}, sync {self.nats.sync}")
        if self._restart:
            self._nats_watcher = asyncio.create_task(self._watch_nats())
        around = self._surroundings()
        parts = [router_part(around), projector_part(around)]
        parts += [benchmarker_part(around, settings.benchmarker)] if self._benchmarker else []
        parts += [worker_part(around, backend) for backend in self._backends]
        await self.supervisor.start(parts)

    def _surroundings(self) -> Surroundings:
        return Surroundings(
            self._data,
            self.nats.url,
            self.router_url,
            self._config,
            self.nats.sync,
            self._router_host,
            self.nats.user,
            self.nats.password,
        )

    async def _watch_nats(self) -> None:
        """The parts wait for the server and repeat what it had not acknowledged; it only has to come back on its port."""
        for wait_s in chain(BACKOFF_S, repeat(BACKOFF_S[-1])):
            while self.nats.process is not None and self.nats.process.poll() is None:  # noqa: ASYNC110 - nothing else tells
                await asyncio.sleep(NATS_POLL_S)
            self._say(f"nats ended unexpectedly; starting it again in {wait_s:g} s")
            await asyncio.sleep(wait_s)
            await self.nats.stop()
            try:
                await self.nats.start()
                self._say("nats is back")
            except ServerError as error:
                self._say(str(error))


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
