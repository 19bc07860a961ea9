from __future__ import annotations

import stat
from pathlib import Path

import pytest

from schemas.work import Body
from services.cli.exits import CommandFailed
from services.cli.parts import Surroundings, router_part, url_here
from services.cli.up import Listen, afterwards, how_to_join, in_hand, refuse_taken_port, to_others, welcome
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


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8420"),
        ("0.0.0.0", "http://127.0.0.1:8420"),
        ("::", "http://127.0.0.1:8420"),
        ("192.168.1.5", "http://192.168.1.5:8420"),
        ("fd00::5", "http://[fd00::5]:8420"),
    ],
)
def test_the_router_listens_where_it_was_told_and_is_asked_where_this_machine_reaches_it(host: str, url: str) -> None:
    assert url_here(host, 8420) == url
    part = router_part(Surroundings(Path("data"), "nats://x", url_here(host, 8420), router_host=host))
    assert part.environment["HEADRACE_ROUTER_HOST"] == host
    assert part.environment["HEADRACE_ROUTER_PORT"] == "8420"


def test_who_lets_other_machines_in_is_told_where_they_ask_and_that_nobody_needs_a_key() -> None:
    assert to_others(Listen("127.0.0.1", 8420, False)).plain.split() == [
        "add",
        "a",
        "machine",
        "headrace",
        "up",
        "--lan",
    ]
    assert to_others(Listen("127.0.0.1", 8420, True, 4222)).plain == ""
    opened = to_others(Listen("0.0.0.0", 8420, False)).plain
    assert ":8420/" in opened and "headrace key add" in opened
    assert "key" not in to_others(Listen("0.0.0.0", 8420, True)).plain.partition(":8420/")[2]


def test_the_line_for_other_machines_names_an_address_that_they_reach() -> None:
    assert how_to_join("s", "192.168.1.20", 4222).endswith(": headrace join s@192.168.1.20:4222")
    assert how_to_join("s", "0.0.0.0", 4222).endswith(":4222") and "0.0.0.0" not in how_to_join("s", "0.0.0.0", 4222)


def test_an_address_that_is_not_this_machines_is_no_taken_port() -> None:
    with pytest.raises(CommandFailed, match=r"nobody can listen on 203\.0\.113\.1"):
        refuse_taken_port(0, "203.0.113.1")


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
