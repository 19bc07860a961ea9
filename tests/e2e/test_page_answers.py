"""Answers in the page's prompt box in a real Chromium: written as text, shown as Markdown, harmless. ``make e2e-page``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from schemas.events import Times
from services.router.http.app import create_app
from services.router.http.page.words import WORDS
from services.router.http.serving import serving
from support.chat_browser import page_browser
from support.eventually import eventually
from support.page_window import PHONE, asked, faults, opened, until_live
from support.router_port import MemoryRouter, Play

pytestmark = pytest.mark.e2e
LINE = (
    "for each in sorted(things, key=lambda thing: thing.weight_in_grams, reverse=True): print(each.name, each.weight)"
)
ANSWER = f"""\
## 並べ替え

**「重い順」**に並べます。 See [the manual](https://docs.example/sort) and ![a picture](https://docs.example/sort.png).

1. one
2. two

```python
{LINE}
```

| name | weight |
|:-----|-------:|
| <b>mill</b> | 12 |

<script>window.harmed = 1</script><img src=x onerror="window.harmed = 2"> [x](javascript:window.harmed=3)
"""
WORDS_OF = "element => element.innerText.match(/[\\p{L}\\p{N}_]+/gu)"
MARKS = {"https", "docs", "example", "sort", "png", "python", "1", "2"}
"""Addresses, numbers of a list and the language of a fence: no text any more."""


@pytest.fixture
async def browser() -> AsyncIterator[Any]:
    async with page_browser() as running:
        yield running


async def plays(play: Play) -> None:
    await play.start()
    for line in ANSWER.splitlines(keepends=True) * 8:
        await play.say(thinking=line)
    for line in ANSWER.splitlines(keepends=True):
        await play.say(line)
    await play.complete()


@asynccontextmanager
async def answered(browser: Any, **options: Any) -> AsyncIterator[tuple[Any, Any]]:
    """A page, and the answer in it that was shown as Markdown."""
    async with (
        serving(create_app(MemoryRouter(plays)), "127.0.0.1", 0, drain_s=1) as url,
        opened(browser, url, **options) as page,
    ):
        await until_live(page)
        answer = await asked(page, "sort it")
        await answer.locator(".shown pre code").wait_for()
        yield page, answer


async def test_a_code_fence_becomes_code_and_no_word_of_it_is_lost(browser: Any) -> None:
    async with answered(browser) as (page, answer):
        shown, written = answer.locator(".shown"), answer.locator(".text")
        assert await shown.locator("pre code").inner_text() == f"{LINE}\n"
        assert await shown.locator("strong").inner_text() == "「重い順」"
        assert await shown.locator("ol li").count() == 2 and await shown.locator("td.right").inner_text() == "12"
        assert await shown.locator("img, script, b").count() == 0 and await page.evaluate("window.harmed") is None
        links = await shown.locator("a").evaluate_all("links => links.map(each => [each.href, each.target, each.rel])")
        assert [link for link, *_ in links] == ["https://docs.example/sort", "https://docs.example/sort.png"]
        assert {tuple(rest) for _, *rest in links} == {("_blank", "noopener noreferrer nofollow")}
        words: list[str] = await shown.evaluate(WORDS_OF)
        await answer.get_by_role("button", name="As written").click()
        assert await written.is_visible() and not await shown.is_visible() and await written.inner_text() == ANSWER
        plain: list[str] = await written.evaluate(WORDS_OF)
        assert [word for word in plain if word not in MARKS] == [word for word in words if word not in MARKS]
        await answer.get_by_role("button", name="As written").click()
        assert await shown.is_visible() and not await written.is_visible()


async def scrolled(element: Any) -> bool:
    return bool(await element.evaluate("element => element.scrollLeft > 0"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("locale", ["en-GB", "ja-JP"])
async def test_code_scrolls_in_its_own_box_by_keyboard_too(browser: Any, locale: str, scheme: str) -> None:
    async with answered(browser, locale=locale, color_scheme=scheme) as (page, answer):
        await page.set_viewport_size(PHONE)
        code = answer.locator("pre")
        width, room = await code.evaluate("pre => [pre.scrollWidth, pre.clientWidth]")
        assert width > room and await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert await answer.locator(".said").evaluate("said => said.scrollWidth <= said.clientWidth")
        assert await code.get_attribute("aria-label") == f"{WORDS['code'][locale == 'ja-JP']} python"
        await answer.locator(".shown a").last.focus()
        await page.keyboard.press("Tab")
        await page.keyboard.press("ArrowRight")
        assert await page.evaluate("document.activeElement.matches('pre')")
        await eventually(lambda: scrolled(code))
        await answer.locator(".thinking summary").click()
        assert await faults(page) == []


@pytest.mark.parametrize("locale", ["en-GB", "ja-JP"])
async def test_who_waits_is_told_why_and_who_answers_in_the_end(browser: Any, locale: str) -> None:
    router = MemoryRouter(None)
    at = int(locale == "ja-JP")
    async with (
        serving(create_app(router), "127.0.0.1", 0, drain_s=1) as url,
        opened(browser, url, locale=locale) as page,
    ):
        await until_live(page)
        answer = await asked(page, "sort it")
        title, told = answer.locator("h3"), answer.locator(".told-of")
        assert await title.inner_text() == f"{WORDS['domain'][at]} general → qwen3 @ desktop"
        await router.last.move(reason="no_worker: laptop is paused", model="llama3", expected_worker="w-2")
        await told.filter(has_text="laptop is paused").wait_for()
        assert (WORDS["hold_no_worker"][at] in await told.inner_text()) == bool(at)
        assert WORDS["start_unknown"][at] in await told.inner_text()
        assert "llama3 @ laptop" in await title.inner_text()
        await router.last.move(reason="busy", eta_s=12.0)
        await told.filter(has_text=WORDS["hold_busy"][at]).wait_for()
        assert WORDS["starts_in"][at] in await told.inner_text()
        await router.last.start(worker="w-1", model="smollm2:135m")
        await router.last.move(ran_s=0.5, ends_s=2.0)
        await told.filter(has_text=WORDS["predicted"][at]).wait_for()
        await router.last.complete("Done.", times=Times(total_s=3.0, source="backend"))
        await answer.locator(".judging").wait_for()
        seconds = [WORDS["unit_s"][at].format(number) for number in ("3.0", "2.5")]
        assert f"{seconds[0]} ({WORDS['predicted'][at]} {seconds[1]})" in await told.inner_text()
        assert "smollm2:135m @ desktop" in await title.inner_text() and await faults(page) == []


async def test_everybody_who_is_compared_is_shown_so(browser: Any) -> None:
    async with (
        serving(create_app(MemoryRouter(plays)), "127.0.0.1", 0, drain_s=1) as url,
        opened(browser, url) as page,
    ):
        await until_live(page)
        await page.locator("#prompt").fill("sort it")
        await page.locator("#compare").click()
        await page.locator("article:nth-of-type(3) pre code").wait_for()
        assert await page.locator("article pre code").count() == await page.locator("article").count() == 3
        assert await faults(page) == []


async def test_what_was_marked_meanwhile_stays_and_plain_words_stay_as_they_are(browser: Any) -> None:
    router = MemoryRouter(None)
    async with serving(create_app(router), "127.0.0.1", 0, drain_s=1) as url, opened(browser, url) as page:
        await until_live(page)
        answer = await asked(page, "sort it")
        written, button = answer.locator(".text"), answer.get_by_role("button", name="As written")
        await router.last.start()
        await router.last.say("**marked**")
        await written.filter(has_text="marked").wait_for()
        await written.evaluate("text => getSelection().selectAllChildren(text)")
        await router.last.complete()
        await button.wait_for()
        assert await button.get_attribute("aria-pressed") == "true" and await written.is_visible()
        answer = await asked(page, "again")
        await router.last.start()
        async with page.expect_response("**/page/answer/*") as told:
            await router.last.complete("Plain words.")
        assert (await told.value).status == 204
        assert await written.inner_text() == "Plain words." and not await button.is_visible()
