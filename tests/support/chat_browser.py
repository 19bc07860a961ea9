"""Headless Chromium on Open WebUI's chat page, as a user who is signed in: type, watch, stop, rate.

Answers "what does somebody at the screen see?". Playwright lies in ``.parts/playwright``, Chromium is the machine's own.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.docker import PARTS, Unavailable

PLAYWRIGHT = PARTS / "playwright"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
)
WITHIN_MS = 60_000
"""A busy machine of two cores runs a browser, Open WebUI, a whole Headrace and the test."""


@asynccontextmanager
async def chromium() -> AsyncIterator[Any]:
    """A browser; each test takes a context of its own from it."""
    command = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if command is None:
        raise Unavailable("no Chromium here: apt-get install chromium")
    if not PLAYWRIGHT.exists():
        raise Unavailable("no Playwright in .parts; `make e2e-openwebui` installs it")
    if str(PLAYWRIGHT) not in sys.path:
        sys.path.append(str(PLAYWRIGHT))
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=command, headless=True, args=list(FLAGS))
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def page_browser() -> AsyncIterator[Any]:
    """A browser for the page's own tests, which skip in words where there is none."""
    try:
        async with chromium() as running:
            yield running
    except Unavailable as error:
        pytest.skip(str(error).replace("e2e-openwebui", "e2e-page"))


@asynccontextmanager
async def signed_in(browser: Any, url: str, token: str) -> AsyncIterator[Any]:
    """A window that has the token, without the dialogue of news."""
    context = await browser.new_context(viewport={"width": 1000, "height": 640}, base_url=url)
    context.set_default_timeout(WITHIN_MS)
    await context.add_init_script(f"localStorage.setItem('token', {json.dumps(token)})")
    try:
        yield context
    finally:
        await context.close()


class Chat:
    """One tab with one chat. ``answer`` is the latest assistant message, pinned by its id: the page loads lazily."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.id = ""
        self.message = ""

    @classmethod
    async def new(cls, window: Any, model: str) -> Chat:
        page = await window.new_page()
        await page.goto(f"/?models={model}")
        await page.locator("#chat-input").wait_for()
        return cls(page)

    async def send(self, text: str) -> None:
        """Returns when the answer's message is there, still empty perhaps."""
        known = await self._messages()
        await self.page.locator("#chat-input").click()
        await self.page.keyboard.insert_text(text)
        await self.page.locator("#send-message-button").click()
        await self.page.wait_for_function(
            "known => [...document.querySelectorAll('[id^=message-]')].some(e => e.querySelector('.chat-assistant')"
            " && !known.includes(e.id))", arg=known,
        )  # fmt: skip
        self.message = next(name for name in await self._messages() if name not in known).removeprefix("message-")
        await self.page.wait_for_url("**/c/*")
        self.id = self.page.url.rpartition("/")[2]

    @property
    def answer(self) -> Any:
        return self.page.locator(f"#message-{self.message}")

    async def text(self) -> str:
        shown = self.answer.locator("#response-content-container")
        return str(await shown.first.inner_text()) if await shown.count() else ""

    async def status(self) -> str:
        shown = self.answer.locator(".status-description")
        return str(await shown.last.inner_text()) if await shown.count() else ""

    async def until_text(self, words: str) -> str:
        await self.answer.locator("#response-content-container").first.filter(has_text=words).wait_for()
        return await self.text()

    async def until_status(self, words: str) -> str:
        await self.answer.locator(".status-description").filter(has_text=words).last.wait_for()
        return await self.status()

    async def stop(self) -> float:
        """Press Stop; the time of the click, as ``time.time`` has it."""
        button = self.page.locator('button[aria-label="Stop"]')
        await button.wait_for()
        await self.page.evaluate(
            "document.addEventListener('click', () => { window.clickedAt = Date.now() }, {capture: true, once: true})"
        )
        await button.click()
        return float(await self.page.evaluate("window.clickedAt")) / 1e3

    async def rate(self, *, good: bool) -> None:
        await self.answer.hover()
        await self.answer.get_by_role("button", name="Good Response" if good else "Bad Response").click()

    async def picture(self, path: Path) -> None:
        await self.page.screenshot(path=path, animations="disabled")

    async def _messages(self) -> list[str]:
        return list(
            await self.page.evaluate(
                "[...document.querySelectorAll('[id^=message-]')].filter(e => e.querySelector('.chat-assistant')).map(e => e.id)"
            )
        )
