"""Signing in and out in a real Chromium: a wrong key, the right one, one that is taken away, too many. ``make e2e-page``."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from services.router.http.access import Access
from services.router.http.app import create_app
from services.router.http.page.words import WORDS
from services.router.http.serving import serving
from services.router.http.tries import BURST
from services.runtime.settings import Key
from support.chat_browser import page_browser
from support.router_port import MemoryRouter

pytestmark = pytest.mark.e2e
PROXIED = {"x-forwarded-for": "10.0.0.9"}
"""From another machine, as far as the router can tell."""


@pytest.fixture
async def browser() -> AsyncIterator[Any]:
    async with page_browser() as running:
        yield running


async def typed(page: Any, key: str) -> None:
    await page.fill("input[name=key]", key)
    async with page.expect_navigation():
        await page.click("form[action='/page/sign-in'] button")


async def test_a_key_opens_the_page_until_it_is_signed_out_or_taken_away(browser: Any) -> None:
    keys = {name: Key(sha256=hashlib.sha256(name.encode()).hexdigest()) for name in ("me", "you")}
    access = Access(keys=keys)
    async with serving(create_app(MemoryRouter(), access=access), "127.0.0.1", 0, drain_s=1) as url:
        page = await browser.new_page(base_url=url, locale="en-GB", extra_http_headers=PROXIED)
        await page.goto("/")
        await typed(page, "guess")
        assert await page.inner_text("[role=alert]") == WORDS["key_unknown"][0]
        await typed(page, "me")
        await page.locator("#line.on").wait_for()
        async with page.expect_navigation():
            await page.click("form[action='/page/sign-out'] button")
        assert await page.locator("input[name=key]").count() == 1

        await typed(page, "me")
        await page.locator("#line.on").wait_for()
        access.change({"you": keys["you"]})
        async with httpx.AsyncClient(base_url=url) as here:
            assert (await here.post("/route", json={"prompt": "something happens"})).status_code == 202
        await page.locator("input[name=key]").wait_for(timeout=20_000)

        for _ in range(BURST):
            await typed(page, "me")
        assert WORDS["too_many_tries"][0].partition("{")[0] in await page.inner_text("[role=alert]")
        await typed(page, "you")
        await page.locator("#line.on").wait_for()
        await page.close()
