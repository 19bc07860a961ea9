from __future__ import annotations

import asyncio
from collections.abc import Callable
from io import StringIO
from typing import Any

import httpx
import pytest
from rich.console import Console

from services.cli import bench
from services.cli.client import RouterClient
from services.cli.exits import CommandFailed

ROW = {
    "model": "small", "domain": "code", "worker": "w1", "worker_name": "desk", "grade": 0.75, "low": 0.5, "high": 0.9,
    "n": 12, "total": 15, "ungraded": 3, "why": "stall", "decode": 80.0,
}  # fmt: skip
VERSUS = {
    "domain": "code", "first": "small", "second": "large", "better": "small", "difference": 0.4, "low": 0.2, "high": 0.6,
    "n": 12,
}  # fmt: skip


def shown(state: str = "done", **fields: Any) -> dict[str, Any]:
    return {
        "run": "r1", "state": state, "done": 2, "total": 4, "eta_s": 6.0, "judged": 0, "rows": [], "versus": [], **fields
    }  # fmt: skip


def text_of(value: Any) -> str:
    written = StringIO()
    Console(file=written, width=120, highlight=False).print(value)
    return written.getvalue()


class Router:
    """Plays the states of a run, the last for ever, and remembers what was asked."""

    def __init__(self, *states: dict[str, Any] | int) -> None:
        self.states = list(states)
        self.asked: list[str] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.path}")
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, int):
            return httpx.Response(state, json={"error": {"code": "x", "message": "no"}})
        return httpx.Response(200, json=state)

    def client(self) -> RouterClient:
        return RouterClient("http://router", transport=httpx.MockTransport(self.answer))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "LOOK_S", 0.0)


async def run(router: Router, told: Callable[[dict[str, Any]], None] = lambda _: None) -> dict[str, Any]:
    async with router.client() as client:
        return await bench.run(client, {}, told)


async def test_a_run_is_followed_to_its_end() -> None:
    router = Router(shown("running"), shown("running", done=3), shown())
    told: list[dict[str, Any]] = []
    assert (await run(router, told.append))["state"] == "done"
    assert router.asked == ["POST /bench", "GET /bench/r1", "GET /bench/r1"]
    assert [each["done"] for each in told] == [2, 3]


async def test_a_router_that_is_gone_for_a_moment_ends_nothing_and_an_unknown_run_does() -> None:
    assert (await run(Router(shown("running"), 503, 503, shown())))["state"] == "done"
    with pytest.raises(CommandFailed):
        await run(Router(shown("running"), 404))
    with pytest.raises(CommandFailed):
        await run(Router(shown("running"), 503))


async def test_an_interrupted_command_ends_the_run() -> None:
    router, seen = Router(shown("running")), asyncio.Event()
    command = asyncio.create_task(run(router, lambda _: seen.set()))
    await seen.wait()
    command.cancel()
    with pytest.raises(asyncio.CancelledError):
        await command
    assert router.asked[-1] == "DELETE /bench/r1"


def test_a_row_shows_the_grade_with_its_interval_and_what_has_none() -> None:
    text = text_of(bench.table(shown(rows=[ROW])))
    for part in ("small", "code", "desk", "75 %", "50 % to 90 %", "12 of 15", "80.0 tok/s", "3 without a grade: stall"):
        assert part in text


def test_what_was_not_graded_is_unknown_and_not_zero() -> None:
    text = text_of(bench.table(shown(rows=[ROW | {"grade": None, "low": None, "high": None, "n": 0, "decode": None}])))
    assert "unknown" in text and "0 %" not in text


def test_which_is_better_is_said_or_that_it_is_undecided() -> None:
    assert bench.versus(VERSUS) == "code: small is better than large, by 0.40 (0.20 to 0.60) over 12 prompts"
    undecided = VERSUS | {"better": None, "difference": 0.1, "low": -0.1, "high": 0.3}
    assert bench.versus(undecided) == "code: undecided between small and large, by 0.10 (-0.10 to 0.30) over 12 prompts"


def test_what_was_wrong_is_named_with_its_task_and_what_was_right_is_not() -> None:
    one = {
        "model": "small",
        "worker_name": "desk",
        "prompt": "sum-1",
        "grade": 0.0,
        "why": "10, not 12",
        "task": "01k1",
    }
    never = one | {"task": None, "grade": None, "why": "not asked"}
    text = text_of(bench.table(shown(asked=[never, *[one] * 7, one | {"grade": 1.0, "task": "01k9"}])))
    assert "  0 %  small on desk, sum-1: 10, not 12; task 01k1" in text
    assert "and 2 more, with --json" in text and "headrace answer TASK" in text
    assert "01k9" not in text and "not asked" not in text
    assert "Not right" not in text_of(bench.table(shown(asked=[one | {"grade": 1.0}])))


def test_an_early_end_and_what_is_left_to_judges_are_said() -> None:
    text = text_of(bench.table(shown("cancelled", judged=8)))
    assert "ended early, after 2 of 4 prompts" in text
    assert "8 prompts have no check and were not asked" in text


def test_without_a_terminal_the_run_is_told_once() -> None:
    written = StringIO()
    console = Console(file=written, width=100)
    with bench.progress(console) as told:
        told(shown("running"))
        told(shown("running"))
    assert written.getvalue() == "run r1: 4 prompts\n"
