"""Keys, as they are sent: who is let in, in which form others are told, and what an admin alone may do."""

from __future__ import annotations

import hashlib

import httpx
import pytest

from services.router.http.access import Access
from services.router.http.app import create_app
from services.runtime.settings import Key
from support.router_port import MemoryRouter

KEYS = {"webui": Key(sha256=hashlib.sha256(b"w").hexdigest(), may_speak_for_users=True)}
HI = {"messages": [{"role": "user", "content": "Hi"}]}


def client(router: MemoryRouter, host: str) -> httpx.AsyncClient:
    app = create_app(router, access=Access(keys=KEYS))
    transport = httpx.ASGITransport(app=app, client=(host, 7), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://router")


@pytest.mark.parametrize(
    ("path", "words"),
    [("/v1/models", "invalid_api_key"), ("/v1/messages", "authentication_error"), ("/workers", "unauthorized")],
)
async def test_without_a_key_nobody_from_elsewhere_is_let_in(router: MemoryRouter, path: str, words: str) -> None:
    async with client(router, "10.0.0.7") as http:
        reply = await http.get(path)
        assert reply.status_code == 401
        assert words in reply.text
        assert "Basic" in reply.headers["www-authenticate"]
        assert (await http.get(path, headers={"authorization": "Bearer nobody"})).status_code == 401
        assert (await http.get("/healthz")).status_code == 200


async def test_with_a_key_that_may_a_user_is_the_client(router: MemoryRouter) -> None:
    async with client(router, "10.0.0.7") as http:
        headers = {"authorization": "Bearer w", "x-openwebui-user-id": "u1"}
        assert (await http.post("/v1/chat/completions", json=HI, headers=headers)).status_code == 200
    assert router.last.asked.client == "u1"


async def test_this_machine_needs_no_key(router: MemoryRouter) -> None:
    async with client(router, "127.0.0.1") as http:
        assert (await http.post("/v1/chat/completions", json=HI)).status_code == 200
        assert (await http.get("/v1/models", headers={"x-forwarded-for": "10.0.0.7"})).status_code == 401
