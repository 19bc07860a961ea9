"""The demo's model server: it answers, it can be slowed, it ends with its parent, and it says why it does not start."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import httpx
import psutil
import pytest

from schemas.errors import ServerError
from services.runtime.llama_server import LlamaServer, find_demo_model
from support.eventually import eventually
from support.llama import MODEL, llama


async def test_a_real_model_answers_under_its_alias() -> None:
    async with llama() as server, httpx.AsyncClient(base_url=server.url) as http:
        body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 4}
        answer = (await http.post("/v1/chat/completions", json=body, timeout=60)).json()
    assert (answer["model"], answer["usage"]["completion_tokens"]) == (MODEL, 4)
    assert answer["timings"]["predicted_ms"] > 0


async def test_a_slow_machine_is_stopped_and_continued_again_and_again() -> None:
    async with llama(duty=0.5) as server:
        (serving,) = psutil.Process(server.pid).children()
        seen: set[str] = set()

        def both() -> bool:
            seen.add("stopped" if serving.status() == psutil.STATUS_STOPPED else "running")
            return seen == {"stopped", "running"}

        await eventually(both, every_s=0.007)
        async with httpx.AsyncClient(base_url=server.url) as http:
            assert (await http.get("/health", timeout=30)).status_code == 200


async def test_a_slow_machine_stays_slow_when_its_port_file_is_gone(tmp_path: Path) -> None:
    async with LlamaServer(duty=0.5, folder=tmp_path / "mine") as server:
        (serving,) = psutil.Process(server.pid).children()
        await eventually(lambda: serving.status() == psutil.STATUS_STOPPED, every_s=0.007)
        (tmp_path / "mine" / "port").unlink()
        await eventually(lambda: serving.status() != psutil.STATUS_STOPPED, every_s=0.007)
        await eventually(lambda: serving.status() == psutil.STATUS_STOPPED, every_s=0.007)


@pytest.mark.parametrize("duty", [1.0, 0.5])
async def test_nothing_survives_a_killed_launcher(duty: float) -> None:
    async with llama(duty=duty) as server:
        family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
        os.kill(server.pid, signal.SIGKILL)

        def gone() -> bool:
            return not any(each.is_running() and each.status() != psutil.STATUS_ZOMBIE for each in family)

        await eventually(gone)


async def test_a_server_that_cannot_start_says_why_in_its_own_words(tmp_path: Path) -> None:
    find_demo_model()
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"this is no model")
    with pytest.raises(ServerError, match=r"broken\.gguf did not start; it said: .+"):
        await LlamaServer(broken).start()


async def test_a_start_that_is_given_up_leaves_neither_child_nor_folder(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    server = LlamaServer(folder=folder)
    starting = asyncio.ensure_future(server.__aenter__())
    await eventually(folder.exists, every_s=0.001)
    child = psutil.Process(server.pid)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not child.is_running()
    assert not folder.exists()


async def test_a_folder_left_by_a_killed_owner_is_no_ones_port(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "port").write_text("1")
    async with LlamaServer(folder=tmp_path / "mine") as server:
        assert not server.url.endswith(":1")
