"""Every command against the real HTTP surfaces over a socket; behind them the port's in-memory implementation."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.cli import output, run_commands
from services.cli.__main__ import run
from services.cli.demo_model import missing_parts
from services.cli.exits import Exit
from services.router.differences import Difference
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.router.policy.routes import Route, Routes, Target
from services.router.port import Busy, RoutesInForce
from services.router.verification import Verification
from support.router_port import MemoryRouter, Play


class Shell:
    """Types command lines at a router; what came out is on ``out`` and ``err``."""

    def __init__(self, url: str, router: MemoryRouter, capture: pytest.CaptureFixture[str]) -> None:
        self.url = url
        self.router = router
        self._capture = capture
        self.out = self.err = ""

    async def type(self, *words: str) -> int:
        code = await asyncio.to_thread(run, [*words, "--router", self.url])
        self.out, self.err = self._capture.readouterr()
        return code

    async def json(self, *words: str) -> Any:
        assert await self.type(*words, "--json") == Exit.OK, self.err
        return json.loads(self.out)


@pytest.fixture
async def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shell]:
    monkeypatch.setenv("COLUMNS", "200")
    router = MemoryRouter()
    async with serving(create_app(router), "127.0.0.1", 0) as url:
        yield Shell(url, router, capsys)


async def test_a_router_is_found_by_host_and_port_alone(shell: Shell) -> None:
    shell.url = shell.url.removeprefix("http://")
    assert await shell.type("fleet") == Exit.OK, shell.err


async def test_ask_names_its_task_on_stderr_and_an_id_cut_short_is_called_so(shell: Shell) -> None:
    await shell.type("ask", "hi")
    assert "; task t1" in shell.err
    assert await shell.type("explain", "t") == Exit.NOT_FOUND
    assert "is it a task's id, and whole" in shell.err


async def test_the_answer_alone_is_on_stdout(shell: Shell) -> None:
    assert await shell.type("ask", "say", "hello") == Exit.OK
    assert shell.out == "Hello world\n"
    assert "qwen3 on desktop" in shell.err
    assert shell.router.last.asked.body.prompt == "say hello" or shell.router.last.asked.body.messages


async def test_an_answer_is_printed_afterwards_and_without_one_the_reason(shell: Shell) -> None:
    await shell.type("ask", "say", "hello")
    task = shell.err.partition("; task ")[2].split()[0]
    assert await shell.type("answer", task) == Exit.OK
    assert shell.out == "Hello world\n" and f"; task {task}" in shell.err
    assert (await shell.json("answer", task))["answer"]["text"] == "Hello world"
    assert await shell.type("answer", "nosuch") == Exit.NOT_FOUND
    assert "is it a task's id, and whole" in shell.err


async def test_ask_reads_a_prompt_from_a_pipe(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("from a pipe\n"))
    assert await shell.type("ask") == Exit.OK
    assert "from a pipe" in str(shell.router.last.asked.body)


async def test_ask_fixes_model_and_machine_and_explains(shell: Shell) -> None:
    assert (
        await shell.type("ask", "hi", "-m", "smollm2:135m", "-w", "desktop", "--max-tokens", "8", "--explain")
        == Exit.OK
    )
    asked = shell.router.last.asked
    assert (asked.wants.model, asked.wants.worker, asked.options.max_tokens) == ("smollm2:135m", "w-1", 8)
    assert "→" in shell.err


async def test_ask_as_json_is_the_end_of_the_task_and_nothing_else(shell: Shell) -> None:
    end = await shell.json("ask", "hi")
    assert end["answer"]["text"] == "Hello world"
    assert end["status"]["state"] == "completed"


async def test_an_answer_that_starts_over_says_so_and_is_whole(shell: Shell) -> None:
    async def dies_once(play: Play) -> None:
        await play.start()
        await play.say("Hel")
        await play.restart()
        await play.start(worker="w-2")
        await play.say("Hello")
        await play.complete()

    shell.router.script = dies_once
    assert await shell.type("ask", "hi") == Exit.OK
    assert shell.out == "Hel\nHello\n"
    assert "starting over on another machine: lost: desktop is silent" in shell.err


async def test_a_failed_task_is_a_failure_with_its_reason(shell: Shell) -> None:
    async def stalls(play: Play) -> None:
        await play.start()
        await play.fail("stall", "no token for 60 s")

    shell.router.script = stalls
    assert await shell.type("ask", "hi") == Exit.FAILED
    assert "stall: no token for 60 s" in shell.err
    assert "headrace explain t1" in shell.err


async def test_thinking_is_no_answer(shell: Shell) -> None:
    async def thinks(play: Play) -> None:
        await play.start()
        await play.say("", thinking="hmm")
        await play.say("42")
        await play.complete()

    shell.router.script = thinks
    assert await shell.type("ask", "hi") == Exit.OK
    assert shell.out == "42\n"
    assert "hmm" in shell.err


async def test_an_unknown_model_names_the_nearest(shell: Shell) -> None:
    assert await shell.type("ask", "hi", "-m", "qwen33") == Exit.NOT_FOUND
    assert "nearest: qwen3" in shell.err


async def test_a_busy_fleet_has_its_own_exit_code_and_says_when_to_come_back(shell: Shell) -> None:
    shell.router.refusal = Busy("the queue is full: 1000 of 1000", retry_after_s=4)
    assert await shell.type("ask", "hi") == Exit.BUSY
    assert "try again in 4 s" in shell.err


async def test_nobody_listening_has_its_own_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert await asyncio.to_thread(run, ["fleet", "--router", "http://127.0.0.1:1"]) == Exit.UNREACHABLE
    assert "headrace up" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["fleet", "stats", "queue"])
async def test_what_is_shown_can_be_had_as_json(shell: Shell, command: str) -> None:
    assert await shell.type(command) == Exit.OK
    assert shell.out.strip()
    assert isinstance(await shell.json(command), dict)


async def test_a_pipe_gets_no_blanks_at_the_ends_of_lines(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    await shell.type("ask", "hi")
    for width in ("80", "200"):
        monkeypatch.setattr(output.out, "_width", int(width))
        for command in (["fleet"], ["fleet", "--models"], ["queue"], ["explain", "t1", "--events"], ["doctor"]):
            await shell.type(*command)
            assert len(shell.out.splitlines()) > 1 or command == ["queue"]
            assert [line for line in shell.out.splitlines() if line.endswith(" ")] == [], command


async def test_the_fleet_shows_its_machines_and_its_models(shell: Shell) -> None:
    assert await shell.type("fleet") == Exit.OK
    assert "desktop" in shell.out
    assert "no_agent" in shell.out
    assert await shell.type("fleet", "--models") == Exit.OK
    assert "qwen3:8b" in shell.out


async def test_a_preview_shows_the_choice_and_submits_nothing(shell: Shell) -> None:
    assert await shell.type("preview", "write code") == Exit.OK
    assert "least predicted completion" in shell.out
    assert shell.router.plays == {}


async def test_explain_tells_of_a_task_and_refuses_an_unknown_one(shell: Shell) -> None:
    await shell.type("ask", "hi")
    assert await shell.type("explain", "t1", "--events") == Exit.OK
    assert "Task t1, completed" in shell.out
    assert await shell.type("explain", "nosuch") == Exit.NOT_FOUND


async def test_a_decision_is_verified_and_set_beside_another_on_request(shell: Shell) -> None:
    await shell.type("ask", "hi")
    assert await shell.type("explain", "t1", "--verify") == Exit.OK
    assert "is the same to the last bit" in " ".join(shell.out.split())
    for command in (("explain", "t1"), ("preview", "hi")):
        assert await shell.type(*command, "--versus", "slider=2") == Exit.OK
        assert "Compared with slider=2:" in shell.out
        assert "The choice is the same." in shell.out
        assert await shell.type(*command, "--versus", "nonsense") == Exit.USAGE
        assert "versus=nonsense: that is no policy, route, task or time" in shell.err


async def test_a_decision_that_comes_out_otherwise_fails_the_command(shell: Shell) -> None:
    await shell.type("ask", "hi")
    shell.router.proof = Verification(
        decision="task.routed", same=False, differences=(Difference(field="seed", recorded=1, computed=2),)
    )
    assert await shell.type("explain", "t1", "--verify") == Exit.FAILED
    assert "seed: the log has 1, computed again it is 2" in " ".join(shell.out.split())


async def test_the_doctor_is_content_with_a_sound_fleet_and_names_what_is_unknown(shell: Shell) -> None:
    assert await shell.type("doctor") == Exit.OK
    assert "sync always" in shell.out
    assert "others_use unknown: no_agent" in shell.out


async def test_the_doctor_fails_where_the_router_is_not_ready(shell: Shell) -> None:
    shell.router.state = type(shell.router.state)(
        ready=False,
        dispatcher=False,
        epoch=0,
        position=3,
        last=9,
        workers=0,
        waiting=0,
        sync="10s",
        reason="reading the log",
    )
    assert await shell.type("doctor") == Exit.FAILED
    assert "not ready: reading the log" in shell.out


async def test_the_doctor_does_not_say_all_well_over_a_route_to_nobody_or_refused_settings(shell: Shell) -> None:
    target = Target(model="qwen3", worker="fats")
    shell.router.in_force = RoutesInForce(
        routes=Routes(routes={"canary": Route(name="canary", by="target_weight", targets=(target,))})
    )
    assert await shell.type("doctor") == Exit.FAILED
    assert "no worker is called 'fats'" in shell.out and "All well" not in shell.out
    shell.router.in_force = RoutesInForce()
    shell.router.state = msgspec.structs.replace(shell.router.state, settings="headrace.toml, line 2: no")
    assert await shell.type("doctor") == Exit.FAILED
    assert "headrace.toml, line 2: no" in shell.out


async def test_the_doctor_looks_where_the_settings_file_says(shell: Shell, tmp_path: Path) -> None:
    config = tmp_path / "headrace.toml"
    config.write_text(f'data_dir = "{tmp_path}/facts"\n', encoding="utf-8")
    await shell.type("doctor", "--config", str(config))
    assert f"{tmp_path}/facts" in shell.out


def test_a_server_alone_starts_as_the_settings_file_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "headrace.toml"
    config.write_text(f'data_dir = "{tmp_path}"\n[nats]\nport = 4333\nsync = "10s"\n', encoding="utf-8")
    became: list[str] = []
    monkeypatch.setattr(run_commands, "become", lambda module, arguments: became.extend([module, *arguments]))
    assert run(["nats", "--config", str(config)]) == Exit.OK
    server = "services.runtime.server --data"
    assert " ".join(became) == f"{server} {tmp_path} --host 127.0.0.1 --port 4333 --sync 10s"


@pytest.mark.skipif(bool(missing_parts()), reason="it would install what is missing")
def test_where_the_demos_model_lies_can_be_had_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo-model", "--json"]) == Exit.OK
    said = json.loads(capsys.readouterr().out)
    assert Path(said["file"]).exists()
    assert (said["model"], said["installed"]) == ("smollm2:135m", [])


async def test_a_wrong_option_is_a_usage_error(shell: Shell) -> None:
    assert await shell.type("fleet", "--no-such") == Exit.USAGE


async def test_errors_are_json_too_where_json_was_asked_for(shell: Shell) -> None:
    assert await shell.type("explain", "nosuch", "--json") == Exit.NOT_FOUND
    assert "nosuch" in json.loads(shell.err)["error"]["message"]
    assert shell.out == ""


async def test_headrace_alone_shows_what_a_newcomer_needs(capsys: pytest.CaptureFixture[str]) -> None:
    assert await asyncio.to_thread(run, []) == Exit.OK
    shown = capsys.readouterr().out
    assert all(f"headrace {command}" in shown for command in ("up", "join", "fleet", "ask", "doctor"))


async def test_a_prompt_that_does_not_fit_a_url_is_refused_by_preview_and_taken_by_ask(shell: Shell) -> None:
    long = "water " * 4000
    assert await shell.type("preview", long) == Exit.USAGE
    assert await shell.type("ask", long) == Exit.OK


async def test_a_router_says_which_ports_there_are_before_it_looks_for_a_nats_server() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.cli", "router", "--port", "99999", "--server", "nats://127.0.0.1:9"),
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode == Exit.USAGE
    assert b"'99999' is no port; there are 0 to 65535" in said


@pytest.mark.parametrize("service", ["router", "worker", "projector"])
async def test_a_service_alone_reads_its_own_arguments(service: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.cli", service, "--help"), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 0
    assert b"--server" in said and f"headrace {service}".encode() in said
