"""Real llama.cpp servers with a real small model, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from schemas.errors import ServerError
from services.runtime.llama_server import LlamaServer

MODEL = "smollm2:135m"


@asynccontextmanager
async def llama(
    *, alias: str = MODEL, slots: int = 1, duty: float = 1.0, context: int = 2048, embeddings: bool = False
) -> AsyncIterator[LlamaServer]:
    """One server, stopped at the end; the test is skipped where the wheels are missing."""
    server = LlamaServer(alias=alias, slots=slots, duty=duty, context=context, embeddings=embeddings)
    try:
        await server.start()
    except ServerError as error:
        if "not installed" in str(error):
            pytest.skip(str(error))
        raise
    try:
        yield server
    finally:
        await server.stop()


@pytest.fixture
async def llama_server() -> AsyncIterator[LlamaServer]:
    async with llama() as server:
        yield server
