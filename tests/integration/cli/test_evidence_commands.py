"""``feedback`` and ``compare`` as they are typed, and the thumbs that ``ask`` offers, against the real HTTP surfaces."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator

import msgspec
import pytest

from services.cli.exits import Exit
from services.router.contest import Referee
from services.router.http.app import create_app
from services.router.http.serving import serving
from support.router_port import MemoryRouter, Play
from support.shell import Shell


async def as_asked(play: Play) -> None:
    """Answers with its own name, where it was told to go; the judge finds no difference."""
    model = play.asked.wants.model or "qwen3"
    await play.start(model=model, worker=play.asked.wants.worker or "w-1")
    await play.say('{"better": "tie"}' if play.asked.bench is not None else f"I am {model}")
    await play.complete()


@pytest.fixture
async def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Shell]:
    monkeypatch.setenv("COLUMNS", "200")
    router = MemoryRouter(as_asked)
    async with serving(create_app(router), "127.0.0.1", 0, drain_s=1) as url:
        yield Shell(url, router, capsys)


async def test_ask_says_in_one_line_how_to_rate_and_that_line_works(shell: Shell) -> None:
    assert await shell.type("ask", "hi") == Exit.OK
    hint = shell.err.splitlines()[-1]
    assert hint == "👍 or 👎? headrace feedback t1 up, or down"
    assert await shell.type("feedback", "t1", "up", "well", "said") == Exit.OK
    assert shell.out == "noted: 1 of 1 for qwen3 on desktop, domain code\n"
    (event,) = shell.router.judgements
    assert (event.value, event.comment, event.client) == (1.0, "well said", "cli")
    await shell.type("ask", "hi", "--json")
    assert "👍" not in shell.err and "👍" not in shell.out


@pytest.mark.parametrize(("word", "value"), [("👎", 0.0), ("so-so", 0.5), ("0.7", 0.7), ("UP", 1.0)])
async def test_a_rating_has_several_words(shell: Shell, word: str, value: float) -> None:
    await shell.type("ask", "hi")
    assert await shell.type("feedback", "t1", word) == Exit.OK
    assert shell.router.judgements[-1].value == value


async def test_what_is_no_rating_is_refused_with_the_way_out(shell: Shell) -> None:
    for words in (("feedback", "t1"), ("feedback", "t1", "great"), ("feedback", "t1", "7")):
        assert await shell.type(*words) == Exit.USAGE
        assert "up" in shell.err
    assert await shell.type("feedback", "nobody", "up") == Exit.NOT_FOUND
    assert "is it a task's id, and whole" in shell.err


async def test_in_a_pipe_each_answer_is_printed_whole_with_what_it_took(shell: Shell) -> None:
    assert await shell.type("compare", "who", "are", "you?") == Exit.OK, shell.err
    assert shell.out.count("\nI am ") == 3
    assert "== 1  " in shell.out and "; task t1" in shell.out
    table = shell.out[shell.out.index("machine") :]
    assert "predicted" in table and table.count("smollm2:135m") == 2
    compare = shell.router.last.asked.parent
    assert f"headrace feedback {compare} --pick NUMBER" in shell.err
    assert await shell.type("feedback", str(compare), "--pick", "2", "clearer") == Exit.OK
    assert shell.router.judgements[-1].comment == "clearer"


async def test_only_these_models_and_machines_are_asked_and_a_judge_says_its_word(shell: Shell) -> None:
    shell.router.referees = Referee(model="qwen3")
    options = ("--models", "qwen3, smollm2", "--workers", "desktop", "--max-tokens", "9", "--judge")
    assert await shell.type("compare", "hi", *options) == Exit.OK, shell.err
    entries = [play.asked for play in shell.router.plays.values() if play.asked.bench is None]
    assert {(new.wants.model, new.wants.worker, new.options.max_tokens) for new in entries} == {
        ("qwen3", "w-1", 9), ("smollm2:135m", "w-1", 9),
    }  # fmt: skip
    assert "qwen3 on 1 (" in shell.out and ": a tie (tie in both orders; it counts 0: never tested" in shell.out


async def test_as_json_it_is_the_comparison_and_nothing_else(shell: Shell) -> None:
    assert await shell.type("compare", "hi", "--json") == Exit.OK
    body = json.loads(shell.out)
    assert (body["state"], len(body["entries"]), body["removed"]) == ("ended", 3, [])


async def test_who_wants_to_pick_is_asked_for_a_key(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("hi"))
    monkeypatch.setattr("click.getchar", lambda: "2")
    assert await shell.type("compare", "hi", "--pick") == Exit.OK, shell.err
    assert "Which is best? [1-3" in shell.err
    assert shell.router.judgements[-1].tasks == ("t2",)


async def test_without_a_terminal_nobody_is_asked_for_a_key(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hi"))
    assert await shell.type("compare", "hi", "--pick") == Exit.USAGE
    assert "--pick NUMBER" in shell.err and not shell.router.plays


async def test_one_model_on_two_machines_leaves_nothing_to_choose(shell: Shell) -> None:
    assert await shell.type("compare", "hi", "--models", "smollm2", "--judge") == Exit.OK
    assert "nothing to choose between" in shell.err and "--pick" not in shell.err


async def test_where_nobody_answered_it_is_a_failure(shell: Shell) -> None:
    async def fails(play: Play) -> None:
        await play.start(model=play.asked.wants.model or "")
        await play.fail("stall", "the stream stood still")

    shell.router.script = fails
    assert await shell.type("compare", "hi") == Exit.FAILED
    assert "not one of them answered" in shell.err and "stall: the stream stood still" in shell.out


async def test_a_comparison_in_an_empty_fleet_says_that_nobody_has_joined_and_what_to_ask(shell: Shell) -> None:
    shell.router.view = msgspec.structs.replace(shell.router.view, workers={})
    assert await shell.type("compare", "hi") == Exit.BUSY
    assert "nobody may answer this now: no machine has joined" in shell.err
    assert "`headrace doctor` says what is missing" in shell.err
