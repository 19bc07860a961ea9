"""``python -m services.projector``: the projector as a process.

Answers "how is it started?". Its files lie in ``<data>/projector``; one process per directory.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from schemas.errors import SettingsError
from services.projector.service import Projector
from services.projector.store import Store
from services.runtime.bus import Bus
from services.runtime.lifecycle import Lifecycle, run_service
from services.runtime.memory import settle
from services.runtime.settings import load

YIELDS_BY = 5
"""Niceness: where cores are few, whoever answers a prompt goes before whoever writes about it."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="headrace projector", description="Fold the log into DuckDB and publish the statistics."
    )
    parser.add_argument("--config", type=Path, help="settings file (TOML)")
    parser.add_argument("--data", type=Path, help="data directory")
    parser.add_argument("--server", help="nats://host:port")
    given = parser.parse_args(arguments)
    try:
        settings = load(given.config, os.environ)
    except SettingsError as error:
        print(f"SettingsError: {error}", file=sys.stderr)
        return 2
    data = given.data or settings.data_dir
    os.nice(YIELDS_BY)
    settle()  # not only when it is ready: a replay makes trees by the ten thousand and no circles, and looking costs 4 % of it

    async def projector(life: Lifecycle) -> None:
        nats, mine = settings.nats, settings.projector
        async with await Bus.connect(
            given.server or nats.url, name="projector", user=nats.user, password=nats.password
        ) as bus:
            store = Store(data / "projector")
            service = Projector(
                bus, store, snapshot_s=mine.snapshot_s, batch_s=mine.batch_ms / 1000, heartbeats_s=mine.heartbeats_s
            )
            await service.run(life)

    return run_service(projector)


if __name__ == "__main__":
    sys.exit(main())
