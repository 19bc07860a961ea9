"""Signing in at the page with a wrong key, too often, and with one that is taken away later."""

from __future__ import annotations

import asyncio
import hashlib

import httpx
import pytest

from services.router.http.access import Access
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.runtime.settings import Key
from support.eventually import PATIENCE_S
from support.router_port import MemoryRouter

BROWSER = {"accept": "text/html,*/*;q=0.8"}
PROXIED = {"x-forwarded-for": "192.168.1.9"}
KEYS = {"me": Key(sha256=hashlib.sha256(b"m").hexdigest())}


@pytest.fixture
def access() -> Access:
    return Access(keys=KEYS)


def browser(router: MemoryRouter, access: Access) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=create_app(router, access=access), client=("192.168.1.9", 4000))
    return httpx.AsyncClient(transport=transport, base_url="http://router.lan", headers=BROWSER)


async def test_who_tries_wrong_keys_is_told_how_long_to_wait_and_the_right_one_still_opens(
    router: MemoryRouter, access: Access
) -> None:
    async with browser(router, access) as tab:
        for _ in range(10):
            assert (await tab.post("/page/sign-in", data={"key": "guess"})).status_code == 401
        late = await tab.post("/page/sign-in", data={"key": "guess"})
        assert late.status_code == 429 and int(late.headers["retry-after"]) <= 6
        assert "Too many wrong keys" in late.text and "<form" in late.text
        assert (await tab.get("/")).status_code == 401, "who shows no key has not tried"
        assert (await tab.post("/page/sign-in", data={"key": "m"})).status_code == 303
        assert (await tab.get("/")).status_code == 200


async def test_a_key_that_was_taken_away_opens_nothing_and_its_cookie_goes(
    router: MemoryRouter, access: Access
) -> None:
    async with browser(router, access) as tab:
        form = await tab.get("/")
        assert form.headers["referrer-policy"] == "same-origin", (
            "with no-referrer browsers send forms as of Origin null"
        )
        await tab.post("/page/sign-in", data={"key": "m"}, headers={"origin": "http://router.lan"})
        assert (await tab.get("/")).status_code == 200
        access.change({"you": Key(sha256=hashlib.sha256(b"y").hexdigest())})
        assert (await tab.get("/queue")).status_code == 401
        asked = await tab.get("/")
        assert asked.status_code == 401 and "This key is not known here" in asked.text
        assert "headrace_key" not in tab.cookies
        again = await tab.get("/")
        assert again.status_code == 401 and "not known" not in again.text


async def test_a_page_that_is_open_ends_when_its_key_is_taken_away(router: MemoryRouter, access: Access) -> None:
    async with (
        serving(create_app(router, access=access), "127.0.0.1", 0, drain_s=1) as url,
        httpx.AsyncClient(base_url=url, headers=PROXIED | {"cookie": "headrace_key=m"}, timeout=PATIENCE_S) as tab,
        tab.stream("GET", "/page/events") as reply,
    ):
        assert reply.status_code == 200
        lines = reply.aiter_lines()
        async for line in lines:
            if line.startswith("data:"):
                break
        access.change({})
        async with httpx.AsyncClient(base_url=url) as here:
            assert (await here.post("/route", json={"prompt": "a secret of the house"})).status_code == 202
        async with asyncio.timeout(PATIENCE_S):
            told = [line async for line in lines if line.startswith("data:")]
        assert told == []
        assert (await tab.get("/page/events")).status_code == 401
