"""``headrace pull`` as it is typed, against the real HTTP surfaces."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import msgspec
import pytest

from schemas.work import PullProgress
from services.cli.exits import Exit
from services.router.http.app import create_app
from services.router.http.serving import serving
from support.router_port import DESKTOP, MemoryRouter
from support.shell import Shell

SUCCESS = PullProgress(status="success", done=True)
FILE = PullProgress(status="pulling d1", digest="sha256:d1", total=100, completed=100)


@pytest.fixture
async def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shell]:
    monkeypatch.setenv("COLUMNS", "200")
    router = MemoryRouter(None)
    router.pull_words = [PullProgress(status="pulling manifest"), FILE, SUCCESS]
    async with serving(create_app(router), "127.0.0.1", 0, drain_s=1) as url:
        yield Shell(url, router, capsys)


async def test_one_machine_fetches_a_model(shell: Shell) -> None:
    assert await shell.type("pull", "qwen3:8b", "--on", "desktop") == Exit.OK
    assert shell.out == "qwen3:8b is on desktop\n"
    assert "pulling manifest" in shell.err
    assert shell.router.pulls == [("w-1", "qwen3:8b")]


async def test_all_are_those_that_can_and_are_there(shell: Shell) -> None:
    attic = msgspec.structs.replace(DESKTOP, id="w-3", name="attic")
    asleep = msgspec.structs.replace(DESKTOP, id="w-4", name="asleep", alive=False)
    more = {worker.id: worker for worker in (attic, asleep)}
    shell.router.view = msgspec.structs.replace(shell.router.view, workers={**shell.router.view.workers, **more})
    assert await shell.type("pull", "m", "--on", "all", "--json") == Exit.OK
    assert sorted(shell.router.pulls) == [("w-1", "m"), ("w-3", "m")]
    told = [json.loads(line) for line in shell.out.splitlines()]
    assert {line["worker"] for line in told} == {"attic", "desktop"}
    assert [line["status"] for line in told].count("success") == 2


async def test_what_went_wrong_is_told_for_its_machine(shell: Shell) -> None:
    shell.router.pull_words = [PullProgress(error="file does not exist")]
    assert await shell.type("pull", "nope", "--on", "desktop") == Exit.FAILED
    assert "desktop: file does not exist" in shell.err
    assert shell.err.startswith("headrace: "), "no empty line where there is no bar"
    assert await shell.type("pull", "m", "--on", "laptop") == Exit.FAILED
    assert "llama.cpp, which cannot fetch models" in shell.err
