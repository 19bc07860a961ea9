"""What a backend would answer with 500, so that a client's mistake cost every machine a try: refused here, by its name."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

HI = [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": HI}),
        ("/v1/completions", {"prompt": "Hi"}),
        ("/v1/responses", {"input": "Hi"}),
        ("/v1/messages", {"messages": HI}),
    ],
)
@pytest.mark.parametrize(("field", "value"), [("min_p", "high"), ("chat_template_kwargs", "x"), ("stop", 7)])
async def test_a_wrong_form_is_named(
    http: httpx.AsyncClient, path: str, body: dict[str, Any], field: str, value: Any
) -> None:
    reply = await http.post(path, json={**body, "model": "qwen3", field: value})
    assert reply.status_code == 400
    assert reply.json()["error"]["message"].startswith(f"{field} is a ")


async def test_so_is_one_of_our_own_tasks(http: httpx.AsyncClient) -> None:
    reply = await http.post("/route", json={"prompt": "Hi", "extra": {"stop": [7]}})
    assert (reply.status_code, reply.json()["error"]["field"]) == (400, "extra.stop[0]")
