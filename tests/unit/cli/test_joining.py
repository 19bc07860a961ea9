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
        assert await joined.get() == "http://nas:8000"
        assert said == [f"waiting for {NOBODY}: nothing answers there; it joins when it does"]
        usual.append(OLLAMA)
        assert await joined.get() == OLLAMA.url
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    assert joined.empty()
