"""A whole Headrace over scripted stand-ins of Ollama and vLLM: what a real server will not do on demand, through everything.

Answers "what does a client get when a server writes just this, and what did the server see of the client's request?".
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from support.backends import Stub, ollama_stand_in, vllm_stand_in
from support.proving import Proof
from support.told_fleets import Machine, told_fleet


class Standing:
    """A stand-in as a told fleet wants its machines."""

    def __init__(self, stand_in: AbstractAsyncContextManager[Stub]) -> None:
        self._stand_in = stand_in
        self.url = ""

    async def __aenter__(self) -> Standing:
        self.stub = await self._stand_in.__aenter__()
        self.url = self.stub.url
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stand_in.__aexit__(*error)


@asynccontextmanager
async def both(folder: Path) -> AsyncIterator[tuple[Proof, dict[str, Stub]]]:
    """The machines ``ollama`` (m:latest, declares tools and no vision) and ``vllm`` (org/m, declares nothing)."""
    standing = {"ollama": Standing(ollama_stand_in()), "vllm": Standing(vllm_stand_in())}
    machines = {name: Machine(one) for name, one in standing.items()}  # type: ignore[arg-type]
    async with told_fleet(folder, machines) as proof:
        yield proof, {name: one.stub for name, one in standing.items()}
