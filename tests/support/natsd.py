"""Fixtures: a real nats-server of the test's own, and a provisioned bus on it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.runtime.bus import Bus
from services.runtime.provision import provision
from services.runtime.server import EmbeddedServer
from support.eventually import eventually


async def freeze(process: subprocess.Popen[bytes] | None) -> None:
    """SIGSTOP, and wait until it holds: the kernel lets a process finish its time slice."""
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    stat = Path(f"/proc/{process.pid}/stat")
    await eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")


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
