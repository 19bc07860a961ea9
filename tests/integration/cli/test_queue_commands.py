"""``queue``, ``pause`` and ``resume`` as they are typed, against the real HTTP surfaces."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from services.cli import queue_commands
from services.cli.__main__ import run
from services.cli.exits import Exit
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.router.port import Rise
from support.router_port import MemoryRouter
from support.shell import Shell


@pytest.fixture
async def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shell]:
    monkeypatch.setenv("COLUMNS", "200")
    router = MemoryRouter(None)
    async with serving(create_app(router), "127.0.0.1", 0, drain_s=1) as url:
        yield Shell(url, router, capsys)


async def test_a_machine_is_taken_out_for_a_time_and_back_in(shell: Shell) -> None:
    assert await shell.type("pause", "desktop", "--for", "2h", "--reason", "a game") == Exit.OK
    assert "desktop is paused for 2h (until" in shell.out and "what runs there (1) ends first" in shell.out
    assert await shell.type("fleet") == Exit.OK
    assert "paused until" in shell.out
    assert await shell.type("resume", "desktop", "--json") == Exit.OK
    assert json.loads(shell.out)["worker"]["paused"] == ""
    assert await shell.type("resume", "desktop") == Exit.OK
    assert shell.out == "desktop takes work again\n"


async def test_what_cannot_be_paused_is_refused_with_the_way_out(shell: Shell) -> None:
    assert await shell.type("pause", "destkop") == Exit.NOT_FOUND
    assert "nearest: desktop" in shell.err
    assert await shell.type("pause", "desktop", "--for", "2") == Exit.USAGE
    assert "such as 90s, 45m, 2h" in shell.err
    assert not shell.router.view.workers["w-1"].paused


async def test_the_queue_shows_names_reasons_and_what_rose(shell: Shell) -> None:
    asked = asyncio.create_task(shell.type("ask", "hi"))
    await shell.router.submitted()
    play = shell.router.last
    rise = Rise(of="position", before=1, after=2, code="joined_ahead", words="1 task of webui joined ahead")
    await play.move(position=2, expected_worker="w-2", eta_s=4.0, reason="busy: all are busy", rises=(rise,))
    await play.followed()
    assert await asyncio.to_thread(run, ["queue", "--router", shell.url]) == Exit.OK
    await play.start()
    await play.complete("done")
    assert await asked == Exit.OK
    shown = shell.out + shell.err
    assert "laptop" in shown and "w-2" not in shown
    assert "busy: all are busy" in shown
    assert "place 1 → 2, joined_ahead: 1 task of webui joined ahead" in shown
    assert "waiting, place 2, starts in about 4.00 s: busy: all are busy" in shown


async def test_a_watched_queue_is_shown_again_and_again_until_it_is_interrupted(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    async def a_second(_: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(queue_commands, "sleep", a_second)
    assert await shell.type("queue", "--watch") == Exit.INTERRUPTED
    assert shell.out.count("0 waiting, 0 released, 0 running") == 3


async def test_names_that_nobody_has_are_said_to_be_unknown_in_words_of_the_command_line(shell: Shell) -> None:
    assert await shell.type("stats", "-m", "nope") == Exit.NOT_FOUND
    assert "no worker holds the model 'nope'; nearest: qwen3" in shell.err
    assert await shell.type("stats", "-w", "destkop") == Exit.NOT_FOUND
    assert "nearest: desktop" in shell.err
    assert await shell.type("explain", "nosuch") == Exit.NOT_FOUND
    assert "no task 'nosuch' is known\n" in shell.err
    assert "GET /" not in shell.err and "`headrace queue` lists" in shell.err


@pytest.mark.parametrize("answer", [b"<html>hello</html>", b"[1, 2]", b"{}", b'"ok"'])
async def test_something_else_that_listens_there_is_said_to_be_no_router(
    answer: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert await asyncio.to_thread(run, ["fleet", "--router", url]) == Exit.UNREACHABLE
    said = capsys.readouterr().err
    assert "is no Headrace router" in said and "--router URL" in said
