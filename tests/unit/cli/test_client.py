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
