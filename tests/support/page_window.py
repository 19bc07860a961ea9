"""The page in a window of headless Chromium that may ask nobody but the router: for the page's tests.

Answers "what did it ask of anybody else, what did its console complain of, and what has axe-core to say?".
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from support.docker import PARTS

AXE = PARTS / "axe" / "node_modules" / "axe-core" / "axe.min.js"
WITHIN_MS = 30_000
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@asynccontextmanager
async def opened(
    browser: Any, url: str, path: str = "/", *, forgives: str = "\0", **options: Any
) -> AsyncIterator[Any]:
    """A window; what it asks of anybody else, and what its console complains of but for what it ``forgives``, fails the test."""
    context = await browser.new_context(viewport=DESK, base_url=url, **({"locale": "en-GB"} | options))
    context.set_default_timeout(WITHIN_MS)
    outside: list[str] = []
    complaints: list[str] = []

    async def only_ours(route: Any) -> None:
        if route.request.url.startswith((url, "data:")):
            await route.continue_()
        else:
            outside.append(route.request.url)
            await route.abort()

    await context.route("**/*", only_ours)
    page = await context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    try:
        await page.goto(path)
        yield page
        assert outside == [] and [words for words in complaints if forgives not in words] == []
    finally:
        await context.close()


async def until_live(page: Any) -> None:
    await page.locator("#line.on").wait_for()


async def asked(page: Any, prompt: str, model: str = "auto") -> Any:
    """The answer's place."""
    await page.locator("#prompt").fill(prompt)
    await page.locator("select[name=model]").select_option(model)
    await page.locator("#ask-form button[type=submit]").click()
    answer = page.locator("article.answer")
    await answer.wait_for()
    return answer


async def faults(page: Any) -> list[str]:
    """What axe-core finds serious or critical, with the places."""
    if not AXE.exists():
        pytest.skip("no axe-core in .parts; `make e2e-page` installs it, where npm is")
    # By the debugger, which the page's policy does not bind: a script tag would be refused, as it should.
    await page.evaluate(AXE.read_text(encoding="utf-8") + "; undefined")
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{fault['id']}: {node['target']} {node.get('failureSummary', '')}"
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]
