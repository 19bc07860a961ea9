"""A worker whose model server is a timer in its own process: the product's worker, without HTTP behind it.

Answers "what does the protocol alone cost?". Embeddings take as long as the stand-ins' would, at one set rate of prefill.
``Sleepers`` runs some of them, each a process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

from schemas.errors import BackendError
from schemas.events import Tokens
from services.runtime.bus import Bus
from services.runtime.lifecycle import Lifecycle, run_service
from services.runtime.settings import Worker
from services.worker.backends.port import BackendModel, BackendRequest, Chunk, Finish, Identity
from services.worker.service import WorkerService
from support.loads import until
from support.stand_ins import VECTOR, tokens_of


class Sleeper:
    """A Backend."""

    kind = "sleeper"
    url = "none"

    def __init__(self, name: str, model: str, prefill: float) -> None:
        self._name, self._model, self._prefill = name, model, prefill

    async def identify(self) -> Identity:
        return Identity(kind=self.kind, version=None, backend_id=self._name)

    async def inventory(self) -> list[BackendModel]:
        return [BackendModel(name=self._model, capabilities=("embedding",), resident=True)]

    async def residency(self) -> frozenset[str]:
        return frozenset((self._model,))

    async def embed(self, request: BackendRequest) -> Finish:
        tokens = sum(map(tokens_of, request.body.inputs))
        await until(tokens / self._prefill)
        vectors = tuple(tuple(VECTOR) for _ in request.body.inputs)
        return Finish(finish_reason="stop", model=self._model, tokens=Tokens(prompt=tokens), vectors=vectors)

    async def chat(self, request: BackendRequest) -> AsyncGenerator[Chunk | Finish]:
        raise BackendError("rejected", "it only embeds")
        yield

    async def aclose(self) -> None:
        pass


class Sleepers:
    """``async with Sleepers(nats_url, count, slots, model, prefill)``; ``pids`` by name."""

    def __init__(self, nats_url: str, count: int, slots: int, model: str, prefill: float) -> None:
        self._arguments = {
            f"sleeper{n}": [nats_url, f"sleeper{n}", str(slots), model, str(prefill)] for n in range(count)
        }
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._processes.items()}

    async def __aenter__(self) -> Sleepers:
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
        for name, arguments in self._arguments.items():
            command = [sys.executable, "-m", "support.sleepers", *arguments]
            self._processes[name] = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()


async def work(life: Lifecycle, nats_url: str, name: str, slots: str, model: str, prefill: str) -> None:
    backend = Sleeper(name, model, float(prefill))
    async with await Bus.connect(nats_url, name=name) as bus:
        settings = Worker(name=name, slots=int(slots), local=False)  # it has no machine of its own to read
        await WorkerService(bus, backend, await backend.identify(), f"w-{name}", settings, {}).run(life)


if __name__ == "__main__":
    sys.exit(run_service(lambda life: work(life, *sys.argv[1:])))
