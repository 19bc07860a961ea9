"""Open WebUI's own HTTP: every failure in plain words, with what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from services.cli.exits import CommandFailed
from services.cli.openwebui import OpenWebUI

Answers = dict[str, tuple[int, Any]]


def there(answers: Answers) -> OpenWebUI:
    """An Open WebUI that gives these answers by path, and 404 elsewhere."""

    def answer(request: httpx.Request) -> httpx.Response:
        status, body = answers.get(request.url.path, (404, {"detail": "Not Found"}))
        return httpx.Response(status, json=body)

    return OpenWebUI("webui:8080", "sk-1", transport=httpx.MockTransport(answer))


VERSION = (200, {"version": "0.12.4"})
LIST, MODELS = "/api/v1/functions/list", "/api/models"
DENIED = (401, {"detail": "You do not have permission to access this resource."})


@pytest.mark.parametrize(
    ("answers", "words", "hint"),
    [
        ({}, "is no Open WebUI: /api/version gave 404", "as in the browser"),
        ({"/api/version": (200, {"version": "0.6.36"})}, "is 0.6.36; 0.12 is the oldest", None),
        ({"/api/version": (200, {"version": "0.24.0", "headrace": "0.1.0"})}, "is Headrace itself", "--router this one"),
        ({"/api/version": VERSION, LIST: DENIED, MODELS: DENIED}, "does not know the key", "API keys"),
        ({"/api/version": VERSION, LIST: DENIED, MODELS: (200, {})}, "no administrator's", "administrator"),
        ({"/api/version": VERSION, LIST: (403, {"detail": "not enabled"})}, "allows no API keys", "ENABLE_API_KEYS"),
        ({"/api/version": VERSION, LIST: (500, {})}, "did not list its functions: status 500", None),
    ],
)  # fmt: skip
async def test_what_keeps_us_out_is_said_plainly(answers: Answers, words: str, hint: str | None) -> None:
    async with there(answers) as webui:
        with pytest.raises(CommandFailed) as fault:
            await webui.check()
    assert words in str(fault.value)
    assert hint is None or hint in str(fault.value.hint)


async def test_a_useless_answer_comes_with_where_to_look() -> None:
    answers: Answers = {"/api/v1/functions/create": (400, {"detail": "[ERROR: Error creating function]"})}
    async with there(answers) as webui:
        with pytest.raises(CommandFailed, match="did not take the function headrace") as fault:
            await webui.write("headrace", {}, new=True)
    assert "log" in str(fault.value.hint)


async def test_nobody_there_is_told_as_such() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("connection refused", request=request)

    handler: Callable[[httpx.Request], httpx.Response] = refuse
    async with OpenWebUI("http://webui", "k", transport=httpx.MockTransport(handler)) as webui:
        with pytest.raises(CommandFailed, match="no Open WebUI answers at http://webui: connection refused"):
            await webui.check()


async def test_its_version_is_known_and_an_unknown_model_has_no_entry() -> None:
    async with there({"/api/version": VERSION, LIST: (200, [])}) as webui:
        assert await webui.check() == "0.12.4"
        assert await webui.entry("headrace") is None
