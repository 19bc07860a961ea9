"""Who answers, and is it a router? A stranger is called one, whatever it says."""

from __future__ import annotations

import json

import httpx
import pytest

from services.cli.client import RouterClient
from services.cli.exits import CommandFailed, Exit

LLAMA_CPP = {"error": {"code": 404, "message": "File Not Found", "type": "not_found_error"}}
OPENAI = {"error": {"message": "Invalid URL", "type": "invalid_request_error", "param": None, "code": None}}


async def refusal(status: int, body: str, path: str = "/queue") -> CommandFailed:
    transport = httpx.MockTransport(lambda _: httpx.Response(status, text=body))
    async with RouterClient("localhost:1", transport=transport) as client:
        with pytest.raises(CommandFailed) as refused:
            await client.get(path)
    return refused.value


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, json.dumps(LLAMA_CPP)),
        (404, json.dumps(OPENAI)),
        (404, json.dumps({"detail": "Not Found"})),
        (404, "404 page not found"),
        (200, "<html>Hello</html>"),
        (200, "[]"),
        (401, json.dumps({"error": "no key"})),
    ],
)
async def test_what_is_no_router_is_called_so_and_not_something_that_was_not_found(status: int, body: str) -> None:
    error = await refusal(status, body)
    assert str(error).startswith("what answers at http://localhost:1 is no Headrace router: it answered /queue with")
    assert error.code == Exit.UNREACHABLE and "--router URL" in (error.hint or "")


async def test_a_routers_own_refusal_keeps_its_words_and_its_way_out() -> None:
    said = {
        "code": "unknown_domain",
        "message": "nothing was measured of a domain 'cod'",
        "field": "domain",
        "nearest": ["code"],
    }
    error = await refusal(404, json.dumps({"error": said}), "/stats")
    assert (str(error), error.code) == (said["message"], Exit.NOT_FOUND)
    assert "headrace stats" in (error.hint or "")


@pytest.mark.parametrize(
    ("status", "code", "message", "words", "hint"),
    [
        (400, "invalid_request", "constraints.worker: no worker is called 'a'", "no worker is called 'a'", "fleet"),
        (401, "unauthorized", "the key is not known here; send one of", "the key is not known here", "HEADRACE_KEY"),
        (403, "forbidden", "only an admin key may", "only an admin key may", "HEADRACE_KEY"),
    ],
)  # fmt: skip
async def test_a_refusal_is_told_in_words_of_the_command_line(
    status: int, code: str, message: str, words: str, hint: str
) -> None:
    error = await refusal(status, json.dumps({"error": {"code": code, "message": message, "nearest": []}}))
    assert str(error) == words and hint in (error.hint or "")


async def test_a_router_without_the_path_may_be_older() -> None:
    said = {"code": "not_found", "message": "GET /stats/map: Not Found; GET / lists the paths", "nearest": []}
    error = await refusal(404, json.dumps({"error": said}), "/stats/map")
    assert (str(error), error.code) == ("GET /stats/map: Not Found", Exit.NOT_FOUND)
    assert "older" in (error.hint or "")


async def test_an_answer_may_hold_what_unicode_calls_a_line_separator() -> None:
    said = '{"text":"one\u2028two\u0085three"}'
    stream = f"event: token\r\ndata: {said}\r\n\r\n".encode()
    transport = httpx.MockTransport(lambda _request: httpx.Response(200, content=stream))
    async with RouterClient("http://router", transport=transport) as client:
        assert [event.data async for event in client.events("/task/t/stream")] == [said]


async def test_a_key_of_the_environment_is_shown_to_the_router(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_KEY", "secret")
    shown = []

    def answer(request: httpx.Request) -> httpx.Response:
        shown.append(request.headers.get("authorization"))
        return httpx.Response(200, json={"tasks": []})

    async with RouterClient("localhost:1", transport=httpx.MockTransport(answer)) as client:
        await client.get("/queue")
    assert shown == ["Bearer secret"]


async def test_lines_come_one_by_one_and_a_refusal_in_ollamas_form_is_told() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text='{"status":"a"}\n\n{"status":"b"}\n'))
    async with RouterClient("localhost:1", transport=transport) as client:
        assert [line["status"] async for line in client.lines("/api/pull", {})] == ["a", "b"]
    transport = httpx.MockTransport(lambda _: httpx.Response(403, json={"error": "only an admin key may"}))
    async with RouterClient("localhost:1", transport=transport) as client:
        with pytest.raises(CommandFailed, match="only an admin key may"):
            await anext(client.lines("/api/pull", {}))
