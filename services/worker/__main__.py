"""``python -m services.worker``: one worker process beside one backend."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

import msgspec

from schemas.errors import BackendError, SettingsError
from services.runtime.bus import Bus
from services.runtime.lifecycle import Lifecycle, run_service
from services.runtime.logs import logger
from services.runtime.settings import Settings, load
from services.worker.backends.detect import USUAL_PLACES, detect
from services.worker.backends.port import Backend, Identity
from services.worker.identity import claim_identity
from services.worker.service import WorkerService

log = logger("worker")

AGAIN_S = 1.0
"""Between two looks for a backend at the start."""


async def find_backend(urls: tuple[str, ...], life: Lifecycle, connect_s: float) -> tuple[Backend, Identity] | None:
    """The first of ``urls`` where a known server answers, asked again until one does; None once the process must go."""
    said: dict[str, str] = {}
    while not life.draining.is_set():
        for url in urls:
            try:
                backend = await detect(url, connect_s=connect_s)
                return backend, await backend.identify()
            except BackendError as error:
                if said.get(url) != str(error):
                    log.warning("no backend yet", action="backend_missing", url=url, error=str(error))
                said[url] = str(error)
        try:
            async with asyncio.timeout(AGAIN_S):
                await life.until_draining()
        except TimeoutError:
            pass
    return None


async def work(settings: Settings, life: Lifecycle) -> None:
    own = settings.worker
    identity = claim_identity(settings.data_dir)
    try:
        urls = (own.backend,) if own.backend else USUAL_PLACES
        found = await find_backend(urls, life, own.timeouts.connect_s)
        if found is None:
            return
        backend, who = found
        nats = settings.nats
        try:
            async with await Bus.connect(nats.url, name=identity.id, user=nats.user, password=nats.password) as bus:
                service = WorkerService(bus, backend, who, identity.id, own, settings.model_names())
                await service.run(life)
        finally:
            await backend.aclose()
    finally:
        identity.release()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="headrace worker", description="One worker beside one model server.")
    parser.add_argument("--config", type=Path, help="a headrace.toml")
    parser.add_argument("--data", type=Path, help="where the worker keeps who it is; each worker needs its own")
    parser.add_argument("--server", help="nats://host:port")
    parser.add_argument("--backend", help="the model server's URL; the usual local ports if left out")
    parser.add_argument("--name", help="the machine's name as people see it; the host's if left out")
    parser.add_argument("--slots", type=int, help="how many streams the backend may run at a time")
    options = parser.parse_args(arguments)

    async def run(life: Lifecycle) -> None:
        await work(with_arguments(load(options.config, os.environ), options), life)

    return run_service(run)


def with_arguments(settings: Settings, options: argparse.Namespace) -> Settings:
    """Arguments stand over environment and file."""
    if options.slots is not None and options.slots < 1:
        raise SettingsError(f"--slots: a worker without a slot does nothing, so at least 1, not {options.slots}")
    worker = {
        key: value
        for key, value in (("backend", options.backend), ("name", options.name), ("slots", options.slots))
        if value is not None
    }
    changes: dict[str, object] = {"worker": msgspec.structs.replace(settings.worker, **worker)}
    if options.data is not None:
        changes["data_dir"] = options.data
    if options.server is not None:
        changes["nats"] = msgspec.structs.replace(settings.nats, url=options.server)
    return msgspec.structs.replace(settings, **changes)


if __name__ == "__main__":
    sys.exit(main())
