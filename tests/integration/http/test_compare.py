"""``POST /compare`` and ``GET /compare/{id}`` as docs/http.md promises them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest

from services.router.contest import Referee
from services.router.http.live import Timing
from services.router.port import Busy
from support.http_examples import example
from support.router_port import MemoryRouter, Play

Event = tuple[str, dict[str, Any]]


async def events_of(lines: AsyncIterator[str]) -> AsyncIterator[Event]:
    name = ""
    async for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, msgspec.json.decode(line.removeprefix("data: "))


async def compared(http: httpx.AsyncClient, **asked: Any) -> list[Event]:
    async with http.stream("POST", "/compare", json={"prompt": "hi", **asked}) as reply:
        assert (reply.status_code, reply.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        return [event async for event in events_of(reply.aiter_lines())]


async def test_all_who_may_answer_are_asked_the_same_and_each_event_names_its_entry(
    wire: httpx.AsyncClient, router: MemoryRouter
) -> None:
    happened = await compared(wire, constraints={"max_tokens": 9}, session="s", extra={"think": False})
    name, opened = happened[0]
    assert name == "compare" and happened[-1] == ("done", {"compare": opened["compare"], "judged": []})
    assert {(e["model"], e["worker_name"]) for e in opened["entries"]} == {
        ("qwen3", "desktop"), ("smollm2:135m", "desktop"), ("smollm2:135m", "laptop"),
    }  # fmt: skip
    for number in (1, 2, 3):
        told = [event for event, data in happened if data.get("entry") == number]
        assert told[-1] == "end" and "token" in told and "status" in told
    asked = [play.asked for play in router.plays.values()]
    assert {(new.kind, new.urgency, new.parent) for new in asked} == {("compare", "batch", opened["compare"])}
    assert all((new.options.max_tokens, new.session, new.body.extra) == (9, "s", {"think": False}) for new in asked)
    assert {(new.wants.model, new.wants.worker) for new in asked} == {
        ("qwen3", "w-1"), ("smollm2:135m", "w-1"), ("smollm2:135m", "w-2"),
    }  # fmt: skip


async def test_a_misspelt_domain_is_said_to_be_one(wire: httpx.AsyncClient) -> None:
    for domain, near in (("maht", "'maths' is one"), ("maths", "")):
        opened = (await compared(wire, constraints={"domain": domain}))[0][1]
        assert (opened["warning"] or "").endswith(near) and bool(opened["warning"]) == bool(near)


async def test_a_machine_that_falls_asleep_is_not_waited_for_for_ever_unless_that_is_said(
    wire: httpx.AsyncClient, router: MemoryRouter
) -> None:
    for said, deadline_s in (({}, 600.0), ({"deadline_s": 5}, 5.0), ({"deadline_s": None}, None)):
        router.plays.clear()
        await compared(wire, constraints=said, judge=True)
        assert {play.asked.deadline_s for play in router.plays.values()} == {deadline_s}


async def test_the_documented_events_have_the_fields_that_are_sent(
    wire: httpx.AsyncClient, router: MemoryRouter
) -> None:
    async def as_asked(play: Play) -> None:
        await play.start(model=play.asked.wants.model or "gemma3")
        await play.say("own in both orders")
        await play.complete()

    router.script, router.referees = as_asked, Referee(model="gemma3")
    happened = dict(await compared(wire, judge=True, models=["qwen3", "smollm2"], workers=["desktop"]))
    lines = re.findall(r"^event: (\w+)\ndata: (.*)$", _document(), flags=re.MULTILINE)
    documented = {name: msgspec.json.decode(data.replace("…", "").replace(", }", "}")) for name, data in lines}
    for name in ("compare", "judged", "done", "end", "token"):
        assert set(documented[name]) <= set(happened[name]), name
    after = (await wire.get(f"/compare/{happened['compare']['compare']}")).json()
    assert set(example("`GET /compare/{id}`")) == set(after)


def _document() -> str:
    from support.http_examples import DOCUMENT

    return DOCUMENT.read_text().partition("## `POST /compare`")[2].partition("\n## ")[0]


async def test_who_is_refused_a_place_is_left_out_with_the_reason(
    wire: httpx.AsyncClient, router: MemoryRouter
) -> None:
    submit, places = router.submit, iter([None, Busy("me has 1 task waiting, its limit is 1", retry_after_s=3.0), None])

    async def full(task: Any) -> Any:
        router.refusal = next(places)
        return await submit(task)

    router.submit = full  # type: ignore[method-assign]
    opened = (await compared(wire))[0][1]
    assert [entry["entry"] for entry in opened["entries"]] == [1, 2]
    assert "refused: me has 1 task waiting" in opened["removed"][0]["reason"]


async def test_where_all_are_refused_the_first_reason_is_the_answer(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    router.refusal = Busy("me has 1 task waiting, its limit is 1", retry_after_s=3.0)
    reply = await http.post("/compare", json={"prompt": "hi"})
    assert (reply.status_code, reply.json()["error"]["code"], reply.headers["retry-after"]) == (429, "busy", "3")


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({}, 400, "prompt"),
        ({"prompt": " "}, 400, "prompt"),
        ({"prompt": "hi", "models": "qwen3"}, 400, "models"),
        ({"prompt": "hi", "models": ["qwen33"]}, 404, "model"),
        ({"prompt": "hi", "judge": "qwen33"}, 404, "model"),
        ({"prompt": "hi", "workers": ["destkop"]}, 400, "workers"),
        ({"prompt": "hi", "constraints": {"worker": "desktop"}}, 400, "constraints.worker"),
        ({"prompt": "hi", "model": "qwen3"}, 400, "model"),
    ],
)
async def test_a_comparison_that_cannot_be_is_refused_by_its_field(
    http: httpx.AsyncClient, router: MemoryRouter, body: dict[str, Any], status: int, field: str
) -> None:
    reply = await http.post("/compare", json=body)
    assert (reply.status_code, reply.json()["error"]["field"]) == (status, field)
    assert not router.plays


async def test_nobody_who_could_answer_is_an_answer_with_every_reason(http: httpx.AsyncClient) -> None:
    reply = await http.post("/compare", json={"prompt": "hi", "constraints": {"context": 999_999}, "models": ["qwen3"]})
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "busy")
    assert "qwen3 on desktop: context: 999999 tokens were asked for" in reply.json()["error"]["message"]


async def test_who_leaves_cancels_what_runs(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    async def never_ends(play: Play) -> None:
        await play.start()
        await play.say("a")

    router.script = never_ends
    async with wire.stream("POST", "/compare", json={"prompt": "hi"}) as reply:
        async for name, _ in events_of(reply.aiter_lines()):
            if name == "token":
                break
    for play in router.plays.values():
        await play.abandoned()
        async for _ in play.updates():
            pass
        assert play.status.state == "cancelled"


@pytest.mark.parametrize("timing", [Timing(hold_s=0.05, keep_alive_s=0.05)])
async def test_a_silent_comparison_is_kept_alive(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.script = None
    async with wire.stream("POST", "/compare", json={"prompt": "hi"}) as reply:
        async for line in reply.aiter_lines():
            if line == ": keep-alive":
                return
    raise AssertionError("the stream ended without one")


async def test_an_unknown_comparison_is_not_found(http: httpx.AsyncClient) -> None:
    for name in ("nobody", "a.b"):
        reply = await http.get(f"/compare/{name}")
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "unknown_task")
