"""A browser's client on another site: whom the router lets, and what other sites' pages still may not."""

from __future__ import annotations

import base64
import hashlib

import httpx
import pytest

from services.router.http.access import Access
from services.router.http.app import create_app
from services.runtime.settings import Http, Key
from support.router_port import MemoryRouter

KEYS = {"me": Key(sha256=hashlib.sha256(b"k").hexdigest(), admin=True)}
CHAT, EVIL = "https://chat.example.org", "https://evil.example"
HI = {"messages": [{"role": "user", "content": "Hi"}]}
KEY = {"authorization": "Bearer k"}
PATH = "/v1/chat/completions"


def client(router: MemoryRouter, *origins: str, keys: dict[str, Key] | None = None) -> httpx.AsyncClient:
    return asking(router, Access(keys=KEYS if keys is None else keys, http=Http(origins=origins)))


def asking(router: MemoryRouter, access: Access) -> httpx.AsyncClient:
    app = create_app(router, access=access)
    transport = httpx.ASGITransport(app=app, client=("10.0.0.7", 7), raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://router")


def preflight(origin: str, headers: str = "authorization, content-type", method: str = "POST") -> dict[str, str]:
    return {"origin": origin, "access-control-request-method": method, "access-control-request-headers": headers}


async def test_a_named_site_may_ask_and_read_the_answer_with_its_headers(router: MemoryRouter) -> None:
    async with client(router, CHAT) as http:
        asked = await http.options(PATH, headers=preflight(CHAT))
        assert (asked.status_code, asked.headers["access-control-allow-origin"]) == (200, CHAT)
        assert asked.headers["access-control-allow-headers"] == "authorization, content-type"
        assert "access-control-allow-credentials" not in asked.headers
        reply = await http.post(PATH, json=HI, headers={"origin": CHAT, **KEY})
        assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (200, CHAT)
        assert reply.headers["access-control-expose-headers"] == "*"
        wrong = await http.post(PATH, json=HI, headers={"origin": CHAT, "authorization": "Bearer x"})
        assert (wrong.status_code, wrong.headers["access-control-allow-origin"]) == (401, CHAT)


async def test_who_is_not_named_is_told_nothing(router: MemoryRouter) -> None:
    for origins in ((), (CHAT,)):
        async with client(router, *origins) as http:
            for reply in (
                await http.options(PATH, headers=preflight(EVIL)),
                await http.get("/v1/models", headers={"origin": EVIL, **KEY}),
            ):
                assert "access-control-allow-origin" not in reply.headers


async def test_a_site_is_let_in_and_shut_out_while_the_router_runs(router: MemoryRouter) -> None:
    access = Access(keys=KEYS)
    async with asking(router, access) as http:

        async def allowed(origin: str) -> list[str | None]:
            asked = await http.options(PATH, headers=preflight(origin))
            read = await http.get("/v1/models", headers={"origin": origin, **KEY})
            return [reply.headers.get("access-control-allow-origin") for reply in (asked, read)]

        for origins, chat, evil in (
            ((), None, None), ((CHAT,), CHAT, None), (("*",), "*", "*"), ((EVIL,), None, EVIL), ((), None, None),
        ):  # fmt: skip
            access.change(KEYS, Http(origins=origins))
            assert (await allowed(CHAT), await allowed(EVIL)) == ([chat] * 2, [evil] * 2)


async def test_any_site_may_ask_with_a_key_in_a_header_and_with_nothing_else(router: MemoryRouter) -> None:
    async with client(router, "*") as http:
        assert (await http.options(PATH, headers=preflight(EVIL))).headers["access-control-allow-origin"] == "*"
        assert (await http.options(PATH, headers=preflight(EVIL, "X-Api-Key"))).status_code == 200
        plain = await http.options(PATH, headers=preflight(EVIL, "content-type"))
        assert plain.status_code >= 400 and "access-control-allow-origin" not in plain.headers
        reply = await http.post(PATH, json=HI, headers={"origin": EVIL, **KEY})
        assert (reply.status_code, reply.headers["access-control-allow-origin"]) == (200, "*")
        kept = await http.get("/queue", headers={"origin": EVIL, "cookie": "headrace_key=k"})
        assert kept.status_code == 200 and "access-control-allow-origin" not in kept.headers


async def test_any_site_may_read_nothing_of_a_router_that_asks_for_no_key(router: MemoryRouter) -> None:
    """Any text would be a key there."""
    async with client(router, "*", keys={}) as http:
        for reply in (
            await http.options(PATH, headers=preflight(EVIL)),
            await http.get("/queue", headers={"origin": EVIL, **KEY}),
            await http.post(PATH, json=HI, headers={"origin": EVIL, **KEY}),
        ):
            assert "access-control-allow-origin" not in reply.headers
        assert reply.status_code == 403


async def test_a_named_site_needs_no_key_where_nobody_does(router: MemoryRouter) -> None:
    async with client(router, CHAT, keys={}) as http:
        assert (await http.post(PATH, json=HI, headers={"origin": CHAT})).status_code == 200
        refused = await http.post(PATH, json=HI, headers={"origin": EVIL})
        assert refused.status_code == 403 and "[http] origins" in refused.text


@pytest.mark.parametrize("origins", [(), (CHAT,), ("*",)])
@pytest.mark.parametrize(
    "kept",
    [{"cookie": "headrace_key=k"}, {"authorization": "Basic " + base64.b64encode(b"me:k").decode()}],
    ids=["cookie", "password"],
)
async def test_what_a_browser_keeps_by_itself_never_serves_another_sites_page(
    router: MemoryRouter, origins: tuple[str, ...], kept: dict[str, str]
) -> None:
    async with client(router, *origins) as http:
        for origin in (EVIL, CHAT):
            assert (await http.post(PATH, json=HI, headers={"origin": origin, **kept})).status_code == 403
        own = await http.post(PATH, json=HI, headers={"origin": "http://router", **kept})
        assert own.status_code == 200
