"""The application over the in-memory router: in this process, and on a real port."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from services.router.http.app import create_app
from services.router.http.live import Timing
from services.router.http.serving import serving
from support.eventually import PATIENCE_S
from support.router_port import MemoryRouter


@pytest.fixture
def router() -> MemoryRouter:
    return MemoryRouter()


@pytest.fixture
def timing() -> Timing:
    """What docs/http.md promises. A test about silence takes shorter ones."""
    return Timing()


@pytest.fixture
async def http(router: MemoryRouter, timing: Timing) -> AsyncIterator[httpx.AsyncClient]:
    """Without sockets; whole replies only."""
    transport = httpx.ASGITransport(app=create_app(router, timing=timing), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://router") as client:
        yield client


@pytest.fixture
async def url(router: MemoryRouter, timing: Timing) -> AsyncIterator[str]:
    """A real uvicorn on a free port."""
    async with serving(create_app(router, timing=timing), "127.0.0.1", 0, drain_s=1) as base:
        yield base


@pytest.fixture
async def wire(url: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE_S) as client:
        yield client
