"""A fleet of two real machines on this one: two llama.cpp servers of different speed under a whole Headrace.

Answers "where is a real fleet to show, to test and to measure against?". The slow machine is the same server, stopped and
continued: its speed and its own timings slow down alike.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from services.cli.client import RouterClient
from services.cli.demo_model import MODEL_NAME
from services.cli.parts import BackendAt
from services.cli.stack import Stack
from services.cli.supervision import Child, Say, together
from services.runtime.llama_server import LlamaServer
from services.runtime.server import Sync

DUTIES = {"fast": 1.0, "slow": 0.25}


class Machine(NamedTuple):
    """One machine of the fleet: its worker's process and its model server."""

    name: str
    worker: Child
    llama: LlamaServer


class DemoFleet:
    """``async with DemoFleet(folder) as fleet: fleet.router_url``. Needs the demo's wheels.

    With ``restart`` off, a worker that a test kills stays dead until ``restart_worker``.
    """

    def __init__(
        self,
        data: Path,
        *,
        duties: Mapping[str, float] = DUTIES,
        sync: Sync = "always",
        slots: int = 1,
        router_port: int = 0,
        restart: bool = True,
        config: Path | None = None,
        benchmarker: bool = False,
        say: Say = lambda _line: None,
    ) -> None:
        self.model = MODEL_NAME
        self.machines: dict[str, Machine] = {}
        self.llamas = {
            name: LlamaServer(alias=MODEL_NAME, slots=slots, duty=duty, folder=data / "llama" / name)
            for name, duty in duties.items()
        }
        self.stack = Stack(
            data, sync=sync, router_port=router_port, restart=restart, config=config, benchmarker=benchmarker, say=say
        )
        self._say = say

    async def __aenter__(self) -> DemoFleet:
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Workers before their servers. Harmless on what never started."""
        await self.stack.stop()
        await asyncio.gather(*(llama.stop() for llama in self.llamas.values()))

    @property
    def router_url(self) -> str:
        return self.stack.router_url

    @property
    def nats_url(self) -> str:
        return self.stack.nats_url

    def client(self) -> RouterClient:
        return RouterClient(self.router_url)

    async def restart_worker(self, name: str) -> None:
        await self.stack.supervisor.restart(f"worker {name}")

    async def _start(self) -> None:
        """Nothing is touched before the data are ours. Then everything loads at the same time; each worker begins when its
        machine's server answers."""
        await self.stack.take_data()
        await together(self.stack.start(), *(self._start_llama(name, llama) for name, llama in self.llamas.items()))
        await self.stack.join(BackendAt(name, llama.url, folder=name) for name, llama in self.llamas.items())
        self.machines = {name: Machine(name, self.stack.worker(name), llama) for name, llama in self.llamas.items()}

    async def _start_llama(self, name: str, llama: LlamaServer) -> None:
        await llama.start()
        self._say(f"llama.cpp {name} ready: {llama.url}")
