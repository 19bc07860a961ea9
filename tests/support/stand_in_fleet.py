"""A whole Headrace in front of stand-ins: nats-server, router, projector and a worker beside each machine, as real processes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from services.cli.parts import BackendAt
from services.cli.stack import Stack
from services.runtime.server import Sync
from support.http_lines import Lines
from support.proving import Proof


@asynccontextmanager
async def stand_in_fleet(
    folder: Path, urls: Mapping[str, str], *, slots: int = 1, routes: str | None = None, sync: Sync = "10s"
) -> AsyncIterator[tuple[Proof, Lines]]:
    """``urls``: machine's name -> its URL; ``routes`` is a routes.toml. The lines lead to the router."""
    config = folder / "headrace.toml"
    config.write_text(f"[worker]\nslots = {slots}\n")
    if routes is not None:
        (folder / "routes.toml").write_text(routes)
    async with AsyncExitStack() as running:
        backends = [BackendAt(name, url, folder=name) for name, url in urls.items()]
        stack = Stack(folder / "data", backends=backends, sync=sync, config=config, restart=False)
        await running.enter_async_context(stack)
        proof = Proof(stack)
        running.push_async_callback(proof.http.aclose)
        await proof.quiet()
        yield proof, await running.enter_async_context(Lines(stack.router_url))


async def served(urls: Mapping[str, str]) -> dict[str, int]:
    """How many requests each machine has answered since its start, by its own word."""
    counts = {}
    for name, url in urls.items():
        async with Lines(url) as lines:
            counts[name] = int((await lines.get("/stand-in")).json()["served"])
    return counts
