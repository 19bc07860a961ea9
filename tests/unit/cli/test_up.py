from __future__ import annotations

import stat
from pathlib import Path

import pytest

from schemas.work import Body
from services.cli.up import afterwards, in_hand, welcome
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.router.port import NewTask
from support.eventually import eventually
from support.router_port import MemoryRouter, Play

HINT = "is not on your PATH"


def test_who_cannot_type_headrace_yet_is_told_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert HINT in welcome("http://127.0.0.1:8420", 1.0, True).plain
    command = tmp_path / "headrace"
    command.touch()
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    assert HINT not in welcome("http://127.0.0.1:8420", 1.0, True).plain


def test_another_router_than_the_usual_one_is_named_in_every_command() -> None:
    plain = welcome("http://127.0.0.1:9000", 1.0, True).plain
    assert plain.count("--router http://127.0.0.1:9000") == 2


def test_what_one_can_do_now_is_aligned() -> None:
    plain = welcome("http://127.0.0.1:8420", 1.0, True).plain
    lines = [line for line in plain.splitlines() if line.startswith(("  ask", "  see", "  OpenAI"))]
    starts = {line.index("headrace" if "headrace" in line else "http") for line in lines}
    assert len(lines) == 3
    assert len(starts) == 1


def test_after_the_demo_the_next_commands_are_ones_that_can_be_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "/bin/headrace up --demo --stay" in afterwards().plain


async def test_who_stops_it_is_told_which_answers_are_still_being_made() -> None:
    async def starts(play: Play) -> None:
        await play.start()

    router = MemoryRouter(starts)
    async with serving(create_app(router), "127.0.0.1", 0, drain_s=1) as url:
        assert await in_hand(url) == "no answer is being made"
        for _ in range(4):
            await router.submit(NewTask(body=Body(prompt="hi")))
        await eventually(lambda: all(play.status.state == "running" for play in router.plays.values()))
        said = await in_hand(url)
    assert said == "4 answers are being made: qwen3 on desktop, qwen3 on desktop, qwen3 on desktop and 1 more"
    assert await in_hand(url) == "the router does not say what runs"
