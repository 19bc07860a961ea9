"""Keys, as they are sent: who is let in, in which form others are told, and what an admin alone may do."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time

import httpx
import pytest

from services.router.http.access import Access
from services.router.http.app import create_app
from services.runtime.settings import Http, Key
from support.router_port import MemoryRouter

KEYS = {"webui": Key(sha256=hashlib.sha256(b"w").hexdigest(), may_speak_for_users=True)}
HI = {"messages": [{"role": "user", "content": "Hi"}]}


def client(router: MemoryRouter, host: str, http: Http | None = None) -> httpx.AsyncClient:
    app = create_app(router, access=Access(keys=KEYS, http=http or Http()))
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


@pytest.mark.parametrize("path", ["/v1/models", "/v1/messages", "/api/tags", "/workers"])
async def test_after_ten_wrong_keys_an_address_is_told_when_to_come_again_and_the_right_key_never_waits(
    router: MemoryRouter, path: str
) -> None:
    async with client(router, "10.0.0.7") as http:
        for _ in range(10):
            assert (await http.get(path, headers={"x-api-key": "guess"})).status_code == 401
        late = await http.get(path, headers={"x-api-key": "guess"})
        assert late.status_code == 429 and 1 <= int(late.headers["retry-after"]) <= 6
        assert "too many wrong keys" in late.text and "guess" not in late.text
        assert (await http.get(path)).status_code == 401, "without a key nothing was guessed"
        assert (await http.get("/queue", headers={"x-api-key": "w"})).status_code == 200
        assert (await http.get("/healthz", headers={"x-api-key": "guess"})).status_code == 200


def signed(secret: str, user: str) -> str:
    """As Open WebUI makes it; the whole form is in tests/unit/router/http/test_user_token.py."""
    claims = {"sub": user, "iss": "open-webui", "exp": time.time() + 300}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({"alg": "HS256"}, claims)
    ]
    mac = hmac.digest(secret.encode(), ".".join(parts).encode(), hashlib.sha256)
    return ".".join([*parts, base64.urlsafe_b64encode(mac).rstrip(b"=").decode()])


async def test_a_user_whom_open_webui_signs_for_is_the_client_and_a_forged_one_is_refused(router: MemoryRouter) -> None:
    key = {"authorization": "Bearer w"}
    async with client(router, "10.0.0.7", Http(user_jwt_secret="ours")) as http:
        sent = key | {"x-openwebui-user-jwt": signed("ours", "u7"), "x-openwebui-user-id": "u1"}
        assert (await http.post("/v1/chat/completions", json=HI, headers=sent)).status_code == 200
        assert router.last.asked.client == "u7"
        forged = await http.post(
            "/v1/chat/completions", json=HI, headers=key | {"x-openwebui-user-jwt": signed("theirs", "u7")}
        )
        assert forged.status_code == 401 and "user_jwt_secret" in forged.text
    async with client(router, "10.0.0.7") as http:
        sent = key | {"x-openwebui-user-jwt": signed("theirs", "u7")}
        assert (await http.post("/v1/chat/completions", json=HI, headers=sent)).status_code == 200
        assert router.last.asked.client == "webui", "without a secret the header says nothing"
