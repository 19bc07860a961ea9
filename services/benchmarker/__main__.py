"""``python -m services.benchmarker``: the benchmarker as a process.

Answers "how is it started?". It keeps no files: what it learns is in the log.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

from schemas.errors import BusError, SettingsError
from schemas.subjects import STATS_BUCKET
from services.benchmarker.asking import Asking
from services.benchmarker.ground import Ground
from services.benchmarker.plugs import answers, cost_of, payers
from services.benchmarker.service import Benchmarker
from services.runtime.bus import STREAM_NOT_FOUND, Bus
from services.runtime.clock import SystemClock
from services.runtime.ids import new_id
from services.runtime.lifecycle import Lifecycle, run_service
from services.runtime.logs import logger
from services.runtime.settings import load

log = logger("benchmarker")

YIELDS_BY = 10
"""Niceness: whoever answers a prompt goes before whoever wonders how fast."""
AGAIN_S = 0.5


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="headrace benchmarker", description="Measure machines and models where nobody is disturbed."
    )
    parser.add_argument("--config", type=Path, help="settings file (TOML)")
    parser.add_argument("--data", type=Path, help="data directory (it keeps nothing there)")
    parser.add_argument("--server", help="nats://host:port")
    given = parser.parse_args(arguments)
    try:
        settings = load(given.config, os.environ)
    except SettingsError as error:
        print(f"SettingsError: {error}", file=sys.stderr)
        return 2
    os.nice(YIELDS_BY)

    async def benchmarker(life: Lifecycle) -> None:
        nats = settings.nats
        async with await Bus.connect(
            given.server or nats.url, name="benchmarker", user=nats.user, password=nats.password
        ) as bus:
            if not await streams_ready(bus, life):
                return
            ground = Ground(bus, Asking(bus), SystemClock(), settings.benchmarker)
            service = Benchmarker(
                ground,
                f"b-{new_id()[-8:]}",
                payers=payers(ground, lambda: new_id()[-6:]),
                answers=answers(ground),
                cost=cost_of(ground),
            )
            await service.run(life)

    return run_service(benchmarker)


async def streams_ready(bus: Bus, life: Lifecycle) -> bool:
    """Wait for a router to make the streams; False when asked to go meanwhile."""
    while not life.draining.is_set():
        try:
            for stream in ("EVENTS", f"KV_{STATS_BUCKET}", "KV_router"):
                await bus.last_seq(stream)
            return True
        except BusError as error:
            if error.code != STREAM_NOT_FOUND:
                log.warning("streams not readable yet", action="streams_wait", error=str(error))
        try:
            async with asyncio.timeout(AGAIN_S):
                await life.until_draining()
        except TimeoutError:
            pass
    return False


if __name__ == "__main__":
    sys.exit(main())
