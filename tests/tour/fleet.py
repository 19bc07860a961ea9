"""A tour twice: of a bare server, and of a whole Headrace in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from support.stand_in_fleet import stand_in_fleet
from tour.observing import Seen

Tour = Callable[..., Awaitable[Seen]]


@asynccontextmanager
async def through(folder: Path, servers: Mapping[str, str]) -> AsyncIterator[str]:
    """The router of a Headrace in front of these servers."""
    async with stand_in_fleet(folder, servers) as (proof, _):
        yield proof.stack.router_url


async def both(tour: Tour, url: str, folder: Path, model: str, *, words: bool) -> tuple[Seen, Seen]:
    """(through us, directly)."""
    theirs = await tour(url, model, words=words)
    async with through(folder, {"desk": url}) as router:
        return await tour(router, model, words=words), theirs
