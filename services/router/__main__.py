"""``python -m services.router``: one router process."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path

import msgspec

from services.router.domains import compile_rules
from services.router.http.access import Access
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.router.routes_file import default_path, watch_routes
from services.router.service import RouterService
from services.router.tuning import tuning_of, watch_tuning
from services.router.waking import Waker
from services.runtime.bus import Bus
from services.runtime.clock import SystemClock
from services.runtime.ids import new_id
from services.runtime.lifecycle import Lifecycle, run_service
from services.runtime.logs import logger
from services.runtime.settings import load

log = logger("router")
PORT_MAX = 65_535


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="headrace router", description="One router: HTTP for clients, and who decides."
    )
    parser.add_argument("--config", type=Path, help="a headrace.toml")
    parser.add_argument("--data", type=Path, help="where it keeps who it is")
    parser.add_argument("--server", help="nats://host:port")
    parser.add_argument("--host", help="where it listens; 0.0.0.0 lets other machines in")
    parser.add_argument("--port", type=port_number, help="0 to 65535, 0 is any free one; 8420 if left out")
    parser.add_argument("--url-file", type=Path, help="written with the base URL once it listens")
    args = parser.parse_args()
    return run_service(lambda life: _run(life, args))


def port_number(text: str) -> int:
    """Before anything is connected: a socket would say it as an error of its own, with a traceback."""
    if text.isdecimal() and int(text) <= PORT_MAX:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port; there are 0 to {PORT_MAX}")


async def _run(life: Lifecycle, args: argparse.Namespace) -> None:
    settings = load(args.config, os.environ)
    tuning = tuning_of(settings)
    access = Access(keys=tuning.keys, http=tuning.http)
    data = args.data or settings.data_dir
    router = settings.router.id or _own_id(data / "router.id")
    bus = await Bus.connect(
        args.server or settings.nats.url,
        name=f"router {router}",
        user=settings.nats.user,
        password=settings.nats.password,
    )
    service = RouterService(
        bus,
        router,
        clock=SystemClock(),
        new_id=new_id,
        rules=compile_rules({label: msgspec.to_builtins(rules) for label, rules in settings.domains.items()}),
        limits=tuning.limits,
        slider=tuning.slider,
        grace_s=settings.router.grace_s,
        places=tuning.places,
        sync=settings.nats.sync,
        keep_s=settings.privacy.keep_s,
        routes=watch_routes(settings.router.routes or default_path(args.config, data)),
        absence=tuning.absence,
        tuning=watch_tuning(args.config, settings, os.environ) if args.config is not None else None,
        on_tuned=lambda now: access.change(now.keys, now.http),
        wake=Waker(settings.wake).wake,
    )
    service.tuned(tuning)
    try:
        await service.start()
        host = args.host or settings.router.host
        port = args.port if args.port is not None else settings.router.port
        async with serving(create_app(service, access=access), host, port) as url:
            log.info("router listens", action="router_listens", url=url, router=router)
            if args.url_file is not None:
                _write(args.url_file, url)
            life.ready()
            await _until_done(life, service)
    finally:
        await service.close()
        await bus.close()


async def _until_done(life: Lifecycle, service: RouterService) -> None:
    """A router has nothing in hand that another would not take up: draining is leaving."""
    failed = asyncio.create_task(service.wait())
    asked = asyncio.create_task(life.until_draining())
    done, pending = await asyncio.wait([failed, asked], return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    if failed in done:
        failed.result()


def _own_id(path: Path) -> str:
    """Who this router is in the log, kept in the data directory so that a restart takes its own key back at once."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(path, f"r-{new_id()[-8:]}")
    return path.read_text().strip()


def _write(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(text)
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main())
