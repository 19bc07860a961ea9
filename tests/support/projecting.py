"""A real projector process, and events in a real stream for it.

Answers "how do I run it, ask it, kill it?". Every process started here is stopped by the context manager, whatever happens.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from schemas.errors import BusError
from services.runtime.bus import Bus
from support.eventually import PATIENCE_S, eventually
from support.history import Raw

CHUNK = 2_000


class ProjectorProcess:
    """``async with ProjectorProcess(url, data) as projector``; ``kill`` and ``start`` as often as wanted."""

    def __init__(self, url: str, data: Path, **settings: str) -> None:
        self._arguments = [sys.executable, "-m", "services.projector", "--server", url, "--data", str(data)]
        self._environment = {**os.environ, "HEADRACE_LOG": "json", **settings}
        self._log_path = data / "projector.log"
        self.directory = data / "projector"
        self.snapshot = self.directory / "snapshot.duckdb"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return self._log_path.read_text()

    def start(self) -> None:
        self._log_path.parent.mkdir(parents=True, exist_ok=True)
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(self._arguments, env=self._environment, stdout=log, stderr=log)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        process, self._process = self._process, None
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(how)
        try:
            return process.wait(30)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()

    async def __aenter__(self) -> ProjectorProcess:
        self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.to_thread(self.stop)

    async def status(self, bus: Bus) -> dict[str, Any] | None:
        try:
            reply = await bus.request("rpc.projector.status", b"{}", timeout_s=1.0)
        except BusError:
            if self._process is not None and self._process.poll() is not None:
                raise RuntimeError(f"the projector is gone: {self.log}") from None
            return None
        answer: dict[str, Any] = msgspec.json.decode(reply)
        return answer

    async def reached(
        self, bus: Bus, position: int, *, within_s: float = PATIENCE_S, every_s: float = 0.05
    ) -> dict[str, Any]:
        """Its status once it has folded up to ``position``."""

        async def look() -> dict[str, Any] | None:
            status = await self.status(bus)
            return status if status is not None and status["position"] >= position else None

        return await eventually(look, within_s=within_s, every_s=every_s) or {}


async def store_events(bus: Bus, log: Iterable[Raw]) -> int:
    """Put the log into EVENTS as fast as the server stores it, without ids and acks; the sequence of the last one.

    The server refuses, and here that would be unseen, what comes while 10,000 messages wait to be stored."""
    last = await bus.last_seq("EVENTS")

    async def stored(up_to: int) -> bool:
        return await bus.last_seq("EVENTS") >= up_to

    for raw in log:
        await bus.nc.publish(raw.subject, raw.data)
        last += 1
        if last % CHUNK == 0:
            await eventually(lambda up_to=last - CHUNK: stored(up_to), every_s=0.001)
    await eventually(lambda: stored(last))
    return last
