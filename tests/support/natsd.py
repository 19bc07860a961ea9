"""Fixtures: a real nats-server of the test's own, and a provisioned bus on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.runtime.bus import Bus
from services.runtime.provision import provision
from services.runtime.server import EmbeddedServer


@pytest.fixture
async def natsd(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    """A real server on a port of its own; stopped afterwards, whatever the test did to it."""
    async with EmbeddedServer(tmp_path / "natsd", sync="10s") as server:
        yield server


@pytest.fixture
async def bus(natsd: EmbeddedServer) -> AsyncIterator[Bus]:
    """A connection with all streams in place."""
    async with await Bus.connect(natsd.url, name="test") as connected:
        await provision(connected)
        yield connected
