"""kill -9 at random moments: the tables are the fold of the log all the same, in the live file and in every snapshot."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from services.projector.store import Store
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from services.runtime.stored import StoredMessage
from support.folded import everything, expected, held
from support.history import many
from support.projecting import ProjectorProcess, store_events
from support.stored_log import stored_log

pytestmark = pytest.mark.torture

EVENTS_PER_KILL = 600
QUICK = {"HEADRACE_PROJECTOR_SNAPSHOT_S": "0.05", "HEADRACE_PROJECTOR_BATCH_MS": "1"}
"""Snapshots and transactions all the time, so that a kill meets one."""


async def test_kills_at_random_moments_lose_and_repeat_nothing(
    natsd: EmbeddedServer, bus: Bus, tmp_path: Path, scale: Callable[[int, int], int]
) -> None:
    """R14. The kill comes at a random position, while events keep coming."""
    kills, seed = scale(5, 50), 14
    rng = random.Random(seed)
    projector = ProjectorProcess(natsd.url, tmp_path / "data", **QUICK)
    log = iter(many(EVENTS_PER_KILL * (kills + 1)))
    checked = 0
    async with projector:
        for kill in range(kills):
            events = [next(log) for _ in range(EVENTS_PER_KILL)]
            feeding = asyncio.create_task(store_events(bus, events))
            target = kill * EVENTS_PER_KILL + rng.randrange(1, EVENTS_PER_KILL)
            await projector.reached(bus, target, every_s=0.002)
            projector.kill()
            await feeding
            if projector.snapshot.exists():
                checked += _is_a_prefix(projector.snapshot, await stored_log(bus))
            projector.start()
        last = await store_events(bus, log)
        await projector.reached(bus, last)
        assert projector.stop() == 0
    print(f"{kills} kills with seed {seed}, {checked} snapshots between them were whole prefixes of the log")
    stored = await stored_log(bus)
    assert held(projector.snapshot) == expected(stored)
    assert everything(projector.snapshot) == everything(_from_scratch(stored, tmp_path / "scratch"))


def _is_a_prefix(snapshot: Path, log: list[StoredMessage]) -> bool:
    """Samples up to some position and none beyond; cells that are a fold of samples that it has."""
    seen = held(snapshot)
    position = max(seen["samples"] + seen["dead"], default=0)
    fold = expected(message for message in log if message.seq <= position)
    assert seen["samples"] == fold["samples"]
    assert seen["cells"].keys() <= fold["cells"].keys()
    return True


def _from_scratch(log: list[StoredMessage], directory: Path) -> Path:
    store = Store(directory).open()
    store.apply(log)
    store.refresh()
    store.close()
    return store.files.live


async def test_a_corrupt_file_heals_while_the_process_is_restarted(
    natsd: EmbeddedServer, bus: Bus, tmp_path: Path
) -> None:
    projector = ProjectorProcess(natsd.url, tmp_path / "data", **QUICK)
    async with projector:
        await projector.reached(bus, await store_events(bus, many(800)))
        projector.stop()
        await store_events(bus, many(300, seed=3))
        live = projector.directory / "live.duckdb"
        live.write_bytes(live.read_bytes()[:12288] + b"\x5a" * 200_000)
        projector.start()
        await projector.reached(bus, await bus.last_seq("EVENTS"))
        projector.stop()
    assert "projection_heals" in projector.log
    assert held(projector.snapshot) == expected(await stored_log(bus))
