"""A worker for each model server of this machine: those that were named, those on the usual ports, those that start later.

Answers "who gets a worker, and when?". It knows nothing of what a worker is, and waits for no model server that is not there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from services.cli.discovery import answers, find_backends
from services.cli.parts import BackendAt, backend_url, name_of
from services.cli.supervision import Say

LOOK_AGAIN_S = 10.0
"""How soon a model server that was started later gets its worker."""
WORKERS_WITHIN_S = 3.0
"""A worker whose model server answers has usually joined by then; nothing else has to wait for it."""

Join = Callable[[BackendAt], Coroutine[Any, Any, None]]


class ModelServers:
    """``known`` are those that were found so far. ``here`` is what this machine is called instead of its host's name."""

    def __init__(self, say: Say, *, here: str | None = None) -> None:
        self.known: list[BackendAt] = []
        self._say = say
        self._here = here

    async def look(self, named: Sequence[str]) -> None:
        """The named ones, and those on this machine's usual ports. Raises CommandFailed for what is no URL."""
        self.known += [BackendAt(self._name(url), url) for url in dict.fromkeys(map(backend_url, named))]
        self.known += await self._new_ones()

    async def give_workers(self, join: Join, settled: Callable[[], None]) -> None:
        """Until it is cancelled. ``settled`` is called once those that are there have their workers, or take long to."""
        async with asyncio.TaskGroup() as group:
            there = await asyncio.gather(*(answers(backend.url) for backend in self.known))
            first = []
            for backend, is_there in zip(self.known, there, strict=True):
                if is_there:
                    first.append(group.create_task(join(backend)))
                else:
                    self._say(f"waiting for {backend.url}: nothing answers there; it joins when it does")
                    group.create_task(_when_it_answers(backend, join))
            if first:
                await asyncio.wait(first, timeout=WORKERS_WITHIN_S)
            settled()
            while True:
                await asyncio.sleep(LOOK_AGAIN_S)
                for backend in await self._later_ones():
                    self.known.append(backend)
                    group.create_task(join(backend))

    async def _later_ones(self) -> list[BackendAt]:
        """None where this machine cannot look now, with no file handle left for example: what runs must not end by it."""
        try:
            return await self._new_ones()
        except OSError as error:
            self._say(f"could not look for new model servers ({error}); looking again in {LOOK_AGAIN_S:g} s")
            return []

    def _name(self, url: str, kind: str | None = None) -> str:
        return name_of(url, kind, here=self._here)

    async def _new_ones(self) -> list[BackendAt]:
        urls = {backend.url for backend in self.known}
        return [
            BackendAt(self._name(found.url, found.kind), found.url)
            for found in await find_backends()
            if found.url not in urls
        ]


async def _when_it_answers(backend: BackendAt, join: Join) -> None:
    while not await _is_there(backend):  # noqa: ASYNC110 - nothing else tells
        await asyncio.sleep(LOOK_AGAIN_S)
    await join(backend)


async def _is_there(backend: BackendAt) -> bool:
    try:
        return await answers(backend.url)
    except OSError:  # this machine cannot look now
        return False
