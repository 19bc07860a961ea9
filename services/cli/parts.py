"""The processes of one Headrace on one machine, as values: what runs each, with which settings, and when it is ready.

Answers "how is a router, a projector, a benchmarker, a worker started here?". Starts nothing itself.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from services.cli.client import RouterClient
from services.cli.exits import CommandFailed, Exit
from services.cli.supervision import Part
from services.runtime.server import LOOPBACK, Sync
from services.runtime.settings import Benchmarker

WORKER_DRAIN_S = 30.0
"""A running answer may be finished; a worker that drains longer than its own drain time is killed."""
SERVICE_DRAIN_S = 10.0
WORKERS_STOP, SERVICES_STOP = 0, 1


Json = dict[str, Any]
Ready = Callable[[], Awaitable[str | None]]


EVERYWHERE = ("0.0.0.0", "::")


class BackendAt(NamedTuple):
    """A model server that gets a worker. ``name`` is the machine's name as people see it, ``folder`` where its worker keeps its
    identity: by default one per URL, so that the same server is the same machine after a restart."""

    name: str
    url: str
    folder: str | None = None


class Surroundings(NamedTuple):
    """What every part of one Headrace shares."""

    data: Path
    nats_url: str
    router_url: str
    config: Path | None = None
    sync: Sync = "always"
    """How the nats-server was started: the router cannot ask it, and says so to people."""
    router_host: str = LOOPBACK
    """Where the router listens; ``router_url`` is how this machine reaches it."""
    nats_user: str | None = None
    nats_password: str | None = None
    """Where the nats-server asks for one. In no argument: those can be read by everybody on the machine."""

    def environment(self) -> dict[str, str]:
        named = {"HEADRACE_NATS_USER": self.nats_user, "HEADRACE_NATS_PASSWORD": self.nats_password}
        return {variable: value for variable, value in named.items() if value is not None}

    def arguments(self, data: Path) -> tuple[str, ...]:
        config = ("--config", str(self.config)) if self.config else ()
        return (*config, "--data", str(data), "--server", self.nats_url)

    def log(self, name: str) -> Path:
        return self.data / "logs" / f"{name}.log"


def router_part(around: Surroundings) -> Part:
    address = urlsplit(around.router_url)

    async def ready() -> str | None:
        readiness = await _quietly(lambda client: client.ready(), around.router_url)
        return around.router_url if readiness.get("ready") else None

    return Part(
        name="router",
        module="services.router",
        arguments=around.arguments(around.data),
        environment={
            **around.environment(),
            "HEADRACE_ROUTER_HOST": around.router_host,
            "HEADRACE_ROUTER_PORT": str(address.port),
            "HEADRACE_NATS_SYNC": around.sync,
        },
        log=around.log("router"),
        drain_s=SERVICE_DRAIN_S,
        stop_order=SERVICES_STOP,
        ready=ready,
        own_word=True,
    )


def projector_part(around: Surroundings) -> Part:
    return Part(
        name="projector",
        module="services.projector",
        arguments=around.arguments(around.data),
        environment=around.environment(),
        log=around.log("projector"),
        drain_s=SERVICE_DRAIN_S,
        stop_order=SERVICES_STOP,
    )


def benchmarker_part(around: Surroundings, settings: Benchmarker) -> Part:
    """It is asked to stop with the workers: what it asked of them need not be waited for."""

    async def ready() -> str | None:
        if not settings.on:
            return "measures only what is asked for ([benchmarker] on = false)"
        return f"measures idle machines, in {100 * settings.budget:.0f} % of their time at most"

    return Part(
        name="benchmarker",
        module="services.benchmarker",
        arguments=around.arguments(around.data),
        environment=around.environment(),
        log=around.log("benchmarker"),
        drain_s=SERVICE_DRAIN_S,
        stop_order=WORKERS_STOP,
        ready=ready,
        own_word=True,
    )


def worker_part(around: Surroundings, backend: BackendAt) -> Part:
    """One that the router is asked about."""

    async def ready() -> str | None:
        body = await _quietly(lambda client: client.get("/workers"), around.router_url)
        mine = [worker for worker in body.get("workers", ()) if worker["name"] == backend.name]
        if not mine or mine[0]["state"] == "silent":
            return None
        models = ", ".join(mine[0]["models"]) or "no model yet"
        return f"{mine[0]['backend']} at {backend.url}, {models}"

    return _worker(around, backend, ready)


def joined_worker_part(around: Surroundings, backend: BackendAt) -> Part:
    """One on another machine than the router, which it cannot ask: it speaks for itself."""

    async def ready() -> str | None:
        return backend.url

    return _worker(around, backend, ready, own_word=True)


def _worker(around: Surroundings, backend: BackendAt, ready: Ready, *, own_word: bool = False) -> Part:
    return Part(
        name=f"worker {backend.name}",
        module="services.worker",
        arguments=around.arguments(around.data / "workers" / slug(backend.folder or backend.url)),
        environment={
            **around.environment(),
            "HEADRACE_WORKER_NAME": backend.name,
            "HEADRACE_WORKER_BACKEND": backend.url,
        },
        log=around.log(f"worker-{slug(backend.name)}"),
        drain_s=WORKER_DRAIN_S + 5,
        stop_order=WORKERS_STOP,
        ready=ready,
        own_word=own_word,
    )


def slug(name: str) -> str:
    """A name or a URL as a file name; letters of any script stay."""
    return re.sub(r"[^\w.-]+", "-", name.partition("://")[2] or name).strip("-.") or "worker"


def backend_url(text: str) -> str:
    """What people type as one form, so that the same server is not taken for two: ``localhost:11434/`` is
    ``http://127.0.0.1:11434``."""
    address = urlsplit(text if "://" in text else f"http://{text}")
    if address.scheme not in ("http", "https") or not address.hostname:
        raise CommandFailed(
            f"{text!r} is no model server's URL", hint="for example http://127.0.0.1:11434", code=Exit.USAGE
        )
    place = address.netloc.replace("localhost", "127.0.0.1") if address.hostname == "localhost" else address.netloc
    return f"{address.scheme}://{place}{address.path.rstrip('/')}"


def url_here(host: str, port: int) -> str:
    """How this machine reaches a router that listens on ``host``."""
    name = LOOPBACK if host in EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


def name_of(url: str, kind: str | None = None, *, here: str | None = None) -> str:
    """What a machine is called: its host (for a loopback address ``here``, else this one's name), and what runs there."""
    address = urlsplit(url)
    is_local = address.hostname in ("127.0.0.1", "localhost", "::1")
    host = (here or socket.gethostname().partition(".")[0]) if is_local else str(address.hostname)
    return "-".join(str(part) for part in (host, kind or address.port) if part)


async def _quietly(ask: Callable[[RouterClient], Awaitable[Json]], url: str) -> Json:
    """Empty while the router does not answer: for questions that are repeated until it does."""
    async with RouterClient(url) as client:
        try:
            return await ask(client)
        except CommandFailed:
            return {}
