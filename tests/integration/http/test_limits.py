"""No limit of tokens, as clients write it that know it from llama.cpp, LM Studio and Ollama: a number below 0."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from support.router_port import MemoryRouter

HI = [{"role": "user", "content": "Hi"}]
PATHS = pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/chat/completions", {"messages": HI}, "max_tokens"),
        ("/v1/chat/completions", {"messages": HI}, "max_completion_tokens"),
        ("/v1/completions", {"prompt": "Hi"}, "max_tokens"),
        ("/v1/responses", {"input": "Hi"}, "max_output_tokens"),
    ],
)


@PATHS
@pytest.mark.parametrize("no_limit", [-1, -2])
async def test_below_nothing_there_is_none(
    http: httpx.AsyncClient, router: MemoryRouter, path: str, body: dict[str, Any], field: str, no_limit: int
) -> None:
    reply = await http.post(path, json={**body, "model": "qwen3", field: no_limit})
    assert reply.status_code == 200
    assert router.last.asked.options.max_tokens is None


@PATHS
async def test_no_token_at_all_is_nobodys_wish(
    http: httpx.AsyncClient, path: str, body: dict[str, Any], field: str
) -> None:
    reply = await http.post(path, json={**body, "model": "qwen3", field: 0})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, field)


async def test_nor_has_a_task_of_our_own_one(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    """What Open WebUI's slider offers reaches us through its function."""
    assert (await http.post("/route", json={"prompt": "Hi", "constraints": {"max_tokens": -2}})).status_code == 202
    assert router.last.asked.options.max_tokens is None
    reply = await http.post("/route", json={"prompt": "Hi", "constraints": {"max_tokens": 0}})
    assert (reply.status_code, reply.json()["error"]["field"]) == (400, "constraints.max_tokens")
