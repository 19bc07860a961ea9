"""Who gets a worker: what was named, once, under this machine's name; what is not there holds up nobody."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from services.cli import joining
from services.cli.discovery import Found
from services.cli.exits import CommandFailed
from services.cli.joining import ModelServers
from services.cli.parts import BackendAt

OLLAMA = Found("ollama", "http://127.0.0.1:11434")
NOBODY = "http://127.0.0.1:9"


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> list[Found]:
    """What answers on the usual ports."""
    found: list[Found] = []

    async def find() -> tuple[Found, ...]:
        return tuple(found)

    async def answers(url: str) -> bool:
        return url != NOBODY

    monkeypatch.setattr(joining, "find_backends", find)
    monkeypatch.setattr(joining, "answers", answers)
    return found


async def next_of(joined: asyncio.Queue[str], running: asyncio.Task[None]) -> str:
    """Who joins next; what ended the looking, where that is what happened."""
    getting = asyncio.create_task(joined.get())
    await asyncio.wait({getting, running}, return_when=asyncio.FIRST_COMPLETED)
    if not getting.done():
        getting.cancel()
        running.result()
        raise AssertionError("the looking ended")
    return getting.result()


async def test_a_named_server_on_a_usual_port_is_one_and_has_the_machines_name(usual: list[Found]) -> None:
    usual.append(OLLAMA)
    servers = ModelServers(lambda _line: None, here="desk")
    await servers.look(["localhost:11434/", "http://nas:8000"])
    assert servers.known == [
        BackendAt("desk-11434", "http://127.0.0.1:11434"),
        BackendAt("nas-8000", "http://nas:8000"),
    ]


async def test_a_found_one_is_called_by_what_it_is(usual: list[Found]) -> None:
    usual.append(OLLAMA)
    servers = ModelServers(lambda _line: None, here="desk")
    await servers.look([])
    assert servers.known == [BackendAt("desk-ollama", OLLAMA.url)]


async def test_what_is_no_url_is_refused(usual: list[Found]) -> None:
    with pytest.raises(CommandFailed, match="'ftp://x' is no model server's URL"):
        await ModelServers(lambda _line: None).look(["ftp://x"])


async def test_what_runs_goes_on_while_nobody_can_look(usual: list[Found], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "LOOK_AGAIN_S", 0.0)
    said: list[str] = []
    servers = ModelServers(said.append)
    await servers.look([NOBODY])
    looks, is_there, joined = 0, False, asyncio.Queue[str]()

    async def find() -> tuple[Found, ...]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise OSError(24, "Too many open files")
        return (OLLAMA,)

    async def answers(url: str) -> bool:
        if not is_there:
            raise OSError(24, "Too many open files")
        return True

    async def join(backend: BackendAt) -> None:
        joined.put_nowait(backend.url)

    running = asyncio.create_task(servers.give_workers(join, lambda: monkeypatch.setattr(joining, "answers", answers)))
    monkeypatch.setattr(joining, "find_backends", find)
    try:
        assert await next_of(joined, running) == OLLAMA.url
        assert said[1:] == [
            "could not look for new model servers ([Errno 24] Too many open files); looking again in 0 s"
        ]
        is_there = True
        assert await next_of(joined, running) == NOBODY
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError, ExceptionGroup):
            await running


async def test_one_that_is_not_there_is_waited_for_and_one_that_starts_later_joins(
    usual: list[Found], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "LOOK_AGAIN_S", 0.0)
    said: list[str] = []
    joined: asyncio.Queue[str] = asyncio.Queue()
    settled = asyncio.Event()

    async def join(backend: BackendAt) -> None:
        joined.put_nowait(backend.url)

    servers = ModelServers(said.append)
    await servers.look(["http://nas:8000", NOBODY])
    running = asyncio.create_task(servers.give_workers(join, settled.set))
    try:
        await settled.wait()
        assert await next_of(joined, running) == "http://nas:8000"
        assert said == [f"waiting for {NOBODY}: nothing answers there; it joins when it does"]
        usual.append(OLLAMA)
        assert await next_of(joined, running) == OLLAMA.url
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError, ExceptionGroup):
            await running
    assert joined.empty()
