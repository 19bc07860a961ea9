"""``headrace up --lan`` and ``headrace join``: two machines as two processes with data of their own, on loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from services.cli.__main__ import run
from services.cli.ask import Narrator, ask
from services.cli.client import RouterClient
from services.cli.exits import CommandFailed, Exit
from services.cli.join import reach
from services.cli.join_code import JoinCode
from services.cli.stack import free_port
from services.runtime.server import EmbeddedServer
from support.eventually import eventually
from support.stub_ollama import StubOllama
from support.stub_server import Pace
from support.up import Up

KEY = "0" * 64


def is_part(command: str) -> bool:
    return "services.cli.child" in command


@pytest.fixture
async def ollama() -> AsyncIterator[StubOllama]:
    async with StubOllama({"qwen3:8b": Pace()}, loaded=["qwen3:8b"]) as server:
        yield server


async def test_one_line_pasted_on_another_machine_makes_its_models_answer(tmp_path: Path, ollama: StubOllama) -> None:
    port, nats_port = free_port(), free_port()
    config = tmp_path / "headrace.toml"
    config.write_text(f'[nats]\nport = {nats_port}\n[keys]\nme = {{ sha256 = "{KEY}" }}\n')
    options = ("--lan", "--host", "127.0.0.1", "--port", str(port), "--config", str(config), "--sync", "10s")
    async with Up(tmp_path / "tower", *options) as tower:
        line = (await tower.until("other machines join by: headrace join ")).rpartition(" ")[2]
        assert line.endswith(f"@127.0.0.1:{nats_port}")
        laptop = (tmp_path / "laptop", "--backend", ollama.url, "--name", "laptop")
        async with Up(*laptop, command=("join", line)) as joined:
            assert ollama.url in await joined.until("worker laptop-")
            async with RouterClient(f"http://127.0.0.1:{port}") as client:
                end = await ask(client, {"prompt": "Hi", "constraints": {"max_tokens": 4}}, Narrator(quiet=True))
                assert end["status"]["state"] == "completed"
            parts = [*joined.left_running(is_part), *tower.left_running(is_part)]
            assert parts and not any(line.partition("@")[0] in command for command in parts)
            joined.interrupt()
            assert await joined.ended() == 0
            assert joined.said[-1] == "left, nothing is left running"
            assert joined.left_running() == []
        async with Up(*laptop, command=("join",)) as again:
            await again.until("worker laptop-")


async def test_who_joined_hears_that_the_fleet_is_away_back_or_has_another_secret(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path / "nats", sync="10s", secret="right") as natsd:
        code = JoinCode("right", "127.0.0.1", natsd.port)
        async with Up(tmp_path / "laptop", command=("join", str(code))) as joined:
            await eventually((tmp_path / "laptop" / "data" / "joined").exists)
            await natsd.kill()
            await joined.until(f"the fleet at {code.place} does not answer")
            await natsd.start()
            await joined.until(f"in the fleet at {code.place} again")
            before = len(joined.said)
            await natsd.stop()
            await joined.until(f"the fleet at {code.place} does not answer", after=before)
            async with EmbeddedServer(tmp_path / "other", sync="10s", port=natsd.port, secret="new"):
                assert await joined.ended() == Exit.FAILED
    assert joined.said[-1] == "left, nothing is left running"


async def test_a_code_of_another_fleet_and_a_place_without_one_are_told_apart(tmp_path: Path) -> None:
    async with EmbeddedServer(tmp_path / "nats", sync="10s", secret="right") as natsd:
        with pytest.raises(CommandFailed, match=rf"127\.0\.0\.1:{natsd.port} does not take this code") as wrong:
            await reach(JoinCode("wrong", "127.0.0.1", natsd.port))
        assert "headrace up --lan" in str(wrong.value.hint)
    with pytest.raises(CommandFailed, match=rf"no fleet answers at 127\.0\.0\.1:{natsd.port}") as nobody:
        await reach(JoinCode("right", "127.0.0.1", natsd.port))
    assert nobody.value.code == Exit.UNREACHABLE
    assert str(natsd.port) in str(nobody.value.hint)


def test_who_joins_for_the_first_time_needs_a_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["join", "--data", str(tmp_path), "--json"]) == Exit.USAGE
    error = json.loads(capsys.readouterr().err)["error"]
    assert str(tmp_path) in error["message"] and "headrace up --lan" in error["hint"]


def test_lan_wants_a_key_and_says_how_to_make_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["up", "--lan", "--data", str(tmp_path / "data")]) == Exit.USAGE
    assert "headrace key add me --config headrace.toml" in capsys.readouterr().err
    (tmp_path / "mine.toml").touch()
    assert run(["up", "--lan", "--config", str(tmp_path / "mine.toml")]) == Exit.USAGE
    assert f"headrace key add me --config {tmp_path / 'mine.toml'}" in capsys.readouterr().err.replace("\n", " ")
    assert not (tmp_path / "data").exists()


def test_the_demo_stays_on_this_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["up", "--demo", "--lan"]) == Exit.USAGE
    assert "for this machine alone" in capsys.readouterr().err
