"""``headrace up`` and its demo on real parts: NATS, router, projector, workers, llama.cpp."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from services.cli.ask import Narrator, ask
from services.cli.client import RouterClient
from services.cli.demo_model import missing_parts
from services.cli.exits import CommandFailed
from services.cli.fleet_process import DemoFleet
from services.cli.stack import free_port
from services.cli.up import Listen, Terminal, refuse_taken_port, up, up_demo
from services.runtime.llama_server import LlamaServer
from support.eventually import eventually
from support.up import Up

pytestmark = pytest.mark.skipif(
    bool(missing_parts()), reason=f"not installed: {[part.package for part in missing_parts()]}"
)


@pytest.fixture
async def llama() -> AsyncIterator[LlamaServer]:
    async with LlamaServer() as server:
        yield server


async def test_the_demo_measures_two_machines_explains_a_decision_and_leaves_nothing(tmp_path: Path) -> None:
    async with Up(tmp_path, "--demo") as up:
        assert await up.ended() == 0, up.said
    assert up.left_running() == []
    prompts = up.last["prompts"]
    assert len(prompts) == 12
    assert {row["machine"] for row in prompts} == {"fast", "slow"}
    assert all(row["state"] == "completed" and row["answer"].strip() for row in prompts)
    assert len({row["domain"] for row in prompts}) >= 4
    decode = {
        name: max(
            row["fields"]["decode"]["value"] or 0 for row in up.last["stats"]["rows"] if row["worker_name"] == name
        )
        for name in ("fast", "slow")
    }
    assert decode["fast"] > decode["slow"] > 0
    assert up.last["explanation"]["words"]
    assert up.last["explanation"]["decision"]["candidates"]


async def test_the_router_listens_where_the_settings_and_the_options_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "headrace.toml").write_text('[router]\nhost = "localhost"\n')
    port = str(free_port())
    async with Up(tmp_path, "--port", port, "--config", str(tmp_path / "headrace.toml")) as up:
        await up.until(f"router ready: http://localhost:{port}")
    async with Up(tmp_path, "--port", port, "--host", "127.0.0.1") as up:
        await up.until(f"router ready: http://127.0.0.1:{port}")
    monkeypatch.setenv("HEADRACE_ROUTER_PORT", port)
    async with Up(tmp_path, "--demo", "--stay") as up:
        await up.until(f"router ready: http://127.0.0.1:{port}")


async def test_up_serves_a_backend_brings_back_what_is_killed_and_stops_on_ctrl_c(
    tmp_path: Path, llama: LlamaServer
) -> None:
    port = free_port()
    async with Up(tmp_path, "--backend", llama.url, "--port", str(port), "--sync", "10s") as up:
        await up.until("worker")
        async with RouterClient(f"http://127.0.0.1:{port}") as client:
            assert (await client.ready())["sync"] == "10s"
            end = await ask(client, {"prompt": "Hi", "constraints": {"max_tokens": 4}}, Narrator(quiet=True))
            assert end["status"]["state"] == "completed"
            for module in ("services.worker", "services.router"):
                before = len(up.said)
                os.kill(up.pid_of(module), signal.SIGKILL)
                await up.until("ended unexpectedly (signal SIGKILL)", after=before)
                await up.until("ready", after=before + 1)
            again = await ask(client, {"prompt": "Hi", "constraints": {"max_tokens": 4}}, Narrator(quiet=True))
            assert again["status"]["state"] == "completed"
        up.interrupt()
        assert await up.ended() == 0
    assert up.said[-1] == "stopped, nothing is left running"
    assert up.left_running() == []


async def test_a_named_backend_that_is_not_there_holds_up_nobody_and_joins_when_it_is(tmp_path: Path) -> None:
    address = free_port()
    url, port = f"http://127.0.0.1:{address}", free_port()
    async with Up(tmp_path, "--backend", url, "--port", str(port)) as up:
        await up.until(f"waiting for {url}: nothing answers there; it joins when it does")
        async with RouterClient(f"http://127.0.0.1:{port}") as client:
            assert (await client.ready())["ready"]
        async with LlamaServer(port=address):
            assert url in await up.until("worker")
            up.interrupt()
            assert await up.ended() == 0
    assert up.left_running() == []


async def test_the_banner_does_not_wait_for_a_backend_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    around = Terminal(Console(), said.append)
    url = f"http://127.0.0.1:{free_port()}"
    shown = ""
    running = asyncio.create_task(
        up(tmp_path, backends=[url], listen=Listen("127.0.0.1", free_port()), sync="10s", around=around)
    )

    def banner() -> bool:
        nonlocal shown
        shown += capsys.readouterr().out
        return "Headrace is up" in shown or running.done()

    try:
        await eventually(banner)
        assert "Headrace is up" in shown
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    assert f"waiting for {url}: nothing answers there; it joins when it does" in said
    assert said[-1] == "stopped, nothing is left running"


async def test_a_killed_up_takes_its_parts_with_it(tmp_path: Path) -> None:
    async with Up(tmp_path, "--port", str(free_port())) as up:
        await up.until("projector ready")
        assert up.left_running()
        up.process.kill()
        await up.ended()
        await eventually(lambda: not up.left_running())


async def test_a_second_up_on_the_same_data_is_refused_by_name(tmp_path: Path) -> None:
    async with Up(tmp_path, "--port", str(free_port())) as first:
        await first.until("nats ready")
        async with Up(tmp_path, "--port", str(free_port())) as second:
            assert await second.ended() == 1


async def test_a_refused_second_demo_leaves_the_models_of_the_first_as_they_are(tmp_path: Path) -> None:
    async with DemoFleet(tmp_path, sync="10s") as first:
        before = sorted(tmp_path.glob("llama/*/*"))
        slow = psutil.Process(first.machines["slow"].llama.pid).children()[0].pid
        with pytest.raises(CommandFailed, match="another nats-server uses"):
            await DemoFleet(tmp_path, sync="10s").__aenter__()
        assert len(before) == 4 and sorted(tmp_path.glob("llama/*/*")) == before
        assert psutil.Process(first.machines["slow"].llama.pid).children()[0].pid == slow


async def test_a_demo_on_the_port_of_another_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CommandFailed, match="is taken"):
            around = Terminal(Console(), lambda _line: None)
            await up_demo(tmp_path / "data", port=taken.getsockname()[1], stay=False, sync="10s", around=around)
    assert not (tmp_path / "data").exists()


def test_the_port_of_another_is_refused_before_anything_starts() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(CommandFailed, match="is taken"):
            refuse_taken_port(taken.getsockname()[1])
