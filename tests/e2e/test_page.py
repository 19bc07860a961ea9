"""The page in headless Chromium: what somebody at the screen sees and does. ``make e2e-page``.

A whole Headrace of real processes stands behind it, over machines whose answers are paced by their prompts; and, for a fleet
that is full, the product's own desk with 50 machines and 500 waiting tasks. A request to anybody but the router fails a test.
"""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from schemas.events import QualityJudged
from services.cli.parts import BackendAt, Surroundings, worker_part
from services.router.fleet import Fleet
from services.router.http.app import create_app
from services.router.http.page.words import WORDS
from services.router.http.serving import serving
from support.chat_browser import page_browser
from support.eventually import eventually
from support.paced_backend import PacedBackend
from support.page_crowd import CrowdRouter
from support.page_window import PHONE, asked, faults, opened, until_live
from support.proving import Proof
from support.router_port import DESKTOP, LAPTOP, MemoryRouter
from support.source import ROOT
from support.told_fleets import Machine, chat, measuring, say_use, told_fleet

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

IMAGES = ROOT / "docs" / "images"
FIRST_PAINT_MS = 1_000
SETTINGS = """
[router]
grace_s = 1
[worker]
slots = 2
"""
LONG_MODEL = "hf.co/bartowski/Mistral-Small-3.2-24B-Instruct-2506-GGUF:Q4_K_M"
LONG_NAMES = (
    msgspec.structs.replace(
        DESKTOP, name="workstation-in-the-cellar-with-a-long-name", others_use=None,
        others_reason="NVML is not readable: NVMLError_LibraryNotFound",
        models=dict.fromkeys((LONG_MODEL, "qwen3", "gemma3:27b-it-qat"), DESKTOP.models["qwen3"]),
    ),
    msgspec.structs.replace(DESKTOP, id="w-9", name="仕事部屋のパソコン", backend_up=False, backend_reason="refused"),
    LAPTOP,
)  # fmt: skip


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Any]:
    async with page_browser() as running:
        yield running


@dataclasses.dataclass
class Site:
    proof: Proof
    data: Path
    attic: PacedBackend

    @property
    def url(self) -> str:
        return self.proof.stack.router_url

    async def join(self, name: str) -> None:
        around = Surroundings(self.data / "fleet", self.proof.stack.nats_url, self.url, self.data / "headrace.toml")
        part = worker_part(around, BackendAt(name, self.attic.url, name))
        told = {
            "OTHERS_USE": str(say_use(self.data, name, 0.25)), "HEADRACE_WORKER_HEARTBEAT_S": "0.5",
            "PYTHONPATH": str(ROOT / "tests"),
        }  # fmt: skip
        part = dataclasses.replace(part, module="support.told_load", environment={**part.environment, **told})
        await self.proof.stack.supervisor.start([part])

    async def leave(self, name: str) -> None:
        """As an interrupt does: it says goodbye."""
        os.kill(self.proof.pid(f"worker {name}"), 15)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> AsyncIterator[Site]:
    data = tmp_path_factory.mktemp("page")
    attic = PacedBackend("qwen3")
    machines = {
        "desktop": Machine(PacedBackend("qwen3", "gemma3"), 0.0, 2),
        "laptop": Machine(PacedBackend("qwen3", "llama3"), None, 1),
    }
    async with attic, told_fleet(data, machines, SETTINGS) as proof:
        yield Site(proof, data, attic)


def row(page: Any, region: str, words: str) -> Any:
    return page.locator(f"[data-region={region}] tr").filter(has_text=words)


async def test_a_machine_joins_is_paused_by_a_key_stroke_and_goes(browser: Any, site: Site) -> None:
    async with opened(browser, site.url) as page:
        await until_live(page)
        assert await page.locator("[data-region=fleet] tr").count() == 2
        laptop = row(page, "fleet", "laptop")
        assert "unknown" in await laptop.inner_text(), "it says nothing of its load"
        await site.join("attic")
        attic = row(page, "fleet", "attic")
        await attic.filter(has_text="ready").filter(has_text="25 %").wait_for()
        await page.get_by_role("button", name="Pause: attic").focus()
        await page.keyboard.press("Enter")
        await attic.filter(has_text="paused").wait_for()
        key = await page.evaluate("document.activeElement.dataset.key")
        assert key == "resume", "who paused it with a key can resume it with the same"
        await page.keyboard.press("Enter")
        await attic.filter(has_text="ready").wait_for()
        await site.leave("attic")
        await attic.wait_for(state="detached")
        assert await page.locator("[data-count=machines]").inner_text() == "2/2"


async def test_a_tasks_life_from_the_prompt_box_to_a_judgement(browser: Any, site: Site) -> None:
    async with opened(browser, site.url) as page:
        await until_live(page)
        answer = await asked(page, "say 40 every 50 ms", "model:qwen3")
        await row(page, "running", "chat").first.wait_for()
        await answer.locator(".text").filter(has_text="w").wait_for()
        task = (await answer.locator("[data-why]").get_attribute("href")) or ""
        await page.locator("article[data-state=completed]").wait_for()
        assert "qwen3 @" in await answer.locator(".told-of").inner_text()
        task = (await answer.locator("[data-why]").get_attribute("href") or "").rpartition("/")[2]
        await page.locator(f"[data-region=decisions] tr[data-id='{task}']").filter(has_text="completed").wait_for()
        await page.locator("[data-region=running]:empty").wait_for(state="attached")
        await answer.get_by_role("button", name="Good answer").click()
        await answer.locator(".thanks").filter(has_text="Stored").wait_for()
    judged = [
        e.event for e in await site.proof.log() if isinstance(e.event, QualityJudged) and e.event.tasks == (task,)
    ]
    assert [(event.source, event.value, event.model) for event in judged] == [("thumb", 1.0, "qwen3")]


async def test_stop_cancels_the_task(browser: Any, site: Site) -> None:
    async with opened(browser, site.url) as page:
        await until_live(page)
        answer = await asked(page, "say 2000 every 20 ms")
        await answer.locator(".text").filter(has_text="w").wait_for()
        await page.get_by_role("button", name="Stop").click()
        await page.locator("article[data-state=cancelled]").wait_for()


async def test_a_decision_is_explained_by_click_and_by_keyboard(browser: Any, site: Site) -> None:
    await chat(site.proof, "say 3")
    async with opened(browser, site.url) as page:
        await until_live(page)
        link = page.locator("[data-region=decisions] a.why").first
        await link.click()
        dialog = page.get_by_role("dialog")
        parts = dialog.locator("table.parts")
        await parts.wait_for()
        heads = await parts.locator("thead th").all_inner_texts()
        assert {"Wait", "Load", "Prefill", "Decode", "Sharing", "Tasks behind", "Quality", "Cost"} <= set(heads)
        assert await parts.locator("tr.chosen").count() == 1 and await parts.locator("tbody tr").count() >= 2
        assert await faults(page) == []
        await page.keyboard.press("Escape")
        await dialog.wait_for(state="hidden")
        await link.focus()
        await page.keyboard.press("Enter")
        await dialog.wait_for()
        await page.keyboard.press("Tab")
        await page.keyboard.press("Escape")
        await dialog.wait_for(state="hidden")
        assert await page.evaluate("document.activeElement.dataset.key") == "why"


async def test_back_closes_what_a_click_opened_and_an_id_is_copied(browser: Any, site: Site) -> None:
    await chat(site.proof, "say 3")
    async with opened(browser, site.url, permissions=["clipboard-read", "clipboard-write"]) as page:
        await until_live(page)
        row_ = page.locator("[data-region=decisions] tr").first
        task, dialog = await row_.get_attribute("data-id"), page.get_by_role("dialog")
        await row_.locator("a.why").click()
        await dialog.get_by_role("button", name="Copy the id").click()
        await dialog.get_by_role("button", name="Copied").wait_for()
        assert await page.evaluate("navigator.clipboard.readText()") == task
        assert page.url.endswith(f"/page/explain/{task}"), "who reloads, or sends the address, sees the same"
        await page.go_back()
        await dialog.wait_for(state="hidden")
        await until_live(page)
        assert page.url == f"{site.url}/"
        await page.go_forward()
        await dialog.wait_for()
        await page.keyboard.press("Escape")
        await page.wait_for_url(f"{site.url}/")
        await dialog.wait_for(state="hidden")


async def test_what_runs_longer_than_predicted_says_so(browser: Any, site: Site) -> None:
    for _ in range(3):
        await chat(site.proof, "say 2")
    async with opened(browser, site.url) as page:
        await until_live(page)
        await asked(page, "say 3000 every 20 ms", "model:qwen3")
        await row(page, "running", "longer than predicted").first.wait_for()
        await page.get_by_role("button", name="Stop").click()
        await page.locator("article[data-state=cancelled]").wait_for()


async def test_a_line_that_is_lost_says_since_when_and_comes_back(browser: Any) -> None:
    router = MemoryRouter()
    async with AsyncExitStack() as running, AsyncExitStack() as first:
        url = await first.enter_async_context(serving(create_app(router), "127.0.0.1", 0, drain_s=1))
        page = await running.enter_async_context(opened(browser, url, forgives="net::ERR_"))
        await until_live(page)
        await first.aclose()
        await page.locator("#line.off").filter(has_text="not connected since").wait_for()
        await router.pause("w-1", None, "test")
        port = int(url.rpartition(":")[2])
        await running.enter_async_context(serving(create_app(router), "127.0.0.1", port, drain_s=1))
        await until_live(page)
        await row(page, "fleet", "desktop").filter(has_text="paused").wait_for()
        assert await page.locator("#line").inner_text() == "live"


async def test_who_was_left_out_is_told_with_the_reason(browser: Any, site: Site) -> None:
    (await site.proof.http.post("/workers/laptop/pause")).raise_for_status()
    try:
        await eventually(lambda: paused(site.proof, "laptop"))
        await chat(site.proof, "say 3")
        async with opened(browser, site.url) as page:
            await until_live(page)
            await page.locator("[data-region=decisions] a.why").first.click()
            removed = page.get_by_role("dialog").locator("table:not(.parts) tr").filter(has_text="laptop")
            assert "paused" in await removed.first.inner_text()
    finally:
        (await site.proof.http.post("/workers/laptop/resume")).raise_for_status()


async def paused(proof: Proof, name: str) -> bool:
    return bool((await proof.workers())[name]["state"] == "paused")


async def test_everybody_is_compared_and_judged_and_the_latest_pick_alone_counts(browser: Any, site: Site) -> None:
    await site.proof.quiet()
    async with opened(browser, site.url) as page:
        await until_live(page)
        await page.get_by_label("Prompt").fill("say 5 every 20 ms")
        await page.get_by_label("let a model judge").check()
        await page.get_by_role("button", name="Compare all").click()
        answers = page.locator("article[data-state=completed]")
        await answers.nth(3).wait_for()
        assert await answers.count() == 4, "two machines with qwen3, one with gemma3, one with llama3"
        verdicts = page.locator("#ask-told p")
        await verdicts.nth(2).wait_for()
        told = await verdicts.all_inner_texts()
        assert len(told) == 3 and sum(words.startswith("llama3 finds") for words in told) == 1
        assert all("equally good" in words for words in told), "the answers are the same words"
        for model, other in (("gemma3", "llama3"), ("llama3", "gemma3")):
            best = answers.filter(has_text=f"{model} @").get_by_role("button", name="This one is best")
            await best.click()
            await answers.filter(has_text=f"{model} @").locator(".thanks").filter(has_text="Stored").wait_for()
            assert await best.get_attribute("aria-pressed") == "true"
            rest = answers.filter(has_text=f"{other} @")
            assert await rest.get_by_role("button", name="This one is best").get_attribute("aria-pressed") != "true"
            assert await rest.locator(".thanks").inner_text() == ""
    log = [e.event for e in await site.proof.log() if isinstance(e.event, QualityJudged) and e.event.peer]
    verdicts_by = [event for event in log if event.source == "judge"]
    assert len(verdicts_by) == 6 and {event.value for event in verdicts_by} == {0.5}
    words = {(event.model, event.peer): event for event in log if event.source == "thumb"}
    assert {pair: event.value for pair, event in words.items() if event.weight} == {
        ("llama3", "gemma3"): 1.0, ("gemma3", "llama3"): 0.0, ("llama3", "qwen3"): 1.0, ("qwen3", "llama3"): 0.0,
    }  # fmt: skip
    assert {pair for pair, event in words.items() if not event.weight} == {("gemma3", "qwen3"), ("qwen3", "gemma3")}


async def test_the_language_and_the_theme_are_chosen_and_kept(browser: Any, site: Site) -> None:
    async with opened(browser, site.url) as page:
        await page.get_by_role("link", name="日本語").click()
        await page.get_by_role("heading", name=WORDS["fleet"][1], exact=True).wait_for()
        await until_live(page)
        assert await row(page, "fleet", WORDS["state_ready"][1]).count() >= 1
        await page.get_by_role("link", name=WORDS["theme_dark"][1]).click()
        await until_live(page)
        assert await page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(13, 17, 23)"
        assert await page.evaluate("document.documentElement.lang") == "ja" and await faults(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_no_serious_fault(browser: Any, site: Site, scheme: str) -> None:
    async with opened(browser, site.url, color_scheme=scheme) as page:
        await until_live(page)
        await asked(page, "say 8 every 10 ms")
        await page.locator("article[data-state=completed]").wait_for()
        assert await faults(page) == []


@pytest.mark.parametrize("locale", ["en-GB", "ja-JP"])
@pytest.mark.parametrize("width", [360, 768, 1440])
async def test_nothing_is_wider_than_its_place(browser: Any, width: int, locale: str) -> None:
    router = MemoryRouter()
    router.view = Fleet(workers={worker.id: worker for worker in LONG_NAMES})
    async with (
        serving(create_app(router), "127.0.0.1", 0, drain_s=1) as url,
        opened(browser, url, locale=locale) as page,
    ):
        await page.set_viewport_size({"width": width, "height": 900})
        await until_live(page)
        wide = await page.evaluate(
            "[document.documentElement, ...document.querySelectorAll('.card')]"
            ".filter(each => each.scrollWidth > each.clientWidth).map(each => each.id || each.tagName)"
        )
        assert wide == []


async def test_on_a_phone_each_row_is_a_card(browser: Any, site: Site) -> None:
    async with opened(browser, site.url) as page:
        await page.set_viewport_size(PHONE)
        await until_live(page)
        assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        label = await page.evaluate(
            "getComputedStyle(document.querySelector('[data-region=fleet] td'), '::after').content"
        )
        assert label == '"Machine"' and await faults(page) == []


async def test_without_scripts_it_is_read_all_the_same(browser: Any, site: Site) -> None:
    async with opened(browser, site.url, java_script_enabled=False) as page:
        assert await page.locator("[data-region=fleet] tr").count() == 2
        assert "Without scripts" in await page.locator("noscript").inner_text()
        await page.locator("[data-region=decisions] a.why").first.click()
        await page.locator("table.parts").wait_for()
        await page.get_by_role("link", name="Back to the page").click()
        await page.locator("#fleet").wait_for()


TWO_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
LONG = {"max_tokens": 400}
VISITS = 5
PAINTS = "performance.getEntriesByType('paint').map(entry => [entry.name, entry.startTime])"
LONGEST_TASK = """
window.longest = 0;
new PerformanceObserver(list => { for (const task of list.getEntries()) longest = Math.max(longest, task.duration) })
  .observe({type: 'longtask', buffered: true});
"""


async def first_paint(browser: Any, url: str) -> float:
    """Milliseconds, of a browser that was never here."""
    async with opened(browser, url) as page:
        await until_live(page)
        return float(dict(await page.evaluate(PAINTS))["first-contentful-paint"])


async def test_fifty_machines_and_five_hundred_waiting_tasks(browser: Any) -> None:
    router = CrowdRouter(50, 500)
    async with AsyncExitStack() as running:
        url = await running.enter_async_context(serving(create_app(router), "127.0.0.1", 0, drain_s=1))
        paints = [await first_paint(browser, url) for _ in range(VISITS)]
        print(f"\nfirst paint {', '.join(f'{ms:.0f}' for ms in paints)} ms (bound {FIRST_PAINT_MS} ms)")
        page = await running.enter_async_context(opened(browser, url))
        await until_live(page)
        waiting = page.locator("[data-region=waiting] tr")
        assert await page.locator("[data-region=fleet] tr").count() == 50 and await waiting.count() >= 480
        await page.evaluate(LONGEST_TASK)
        for _ in range(5):
            before = [task.task for task in router.queue() if task.state == "waiting"]
            router.move()
            wanted = [task.task for task in router.queue() if task.state == "waiting"]
            assert wanted != before
            await eventually(lambda now=wanted: shows(page, now), within_s=20)
        print(f"longest task of the browser while five moves were shown: {await page.evaluate('longest'):.0f} ms")
        assert await faults(page) == []
        assert min(paints) <= FIRST_PAINT_MS, "the least of some: a busy machine only adds"


async def shows(page: Any, wanted: list[str]) -> bool:
    ids = await page.evaluate("[...document.querySelectorAll('[data-region=waiting] tr')].map(row => row.dataset.id)")
    assert ids == wanted, f"{len(ids)} rows, {len(wanted)} wanted"
    return True


async def test_pictures_for_the_readme(browser: Any, site: Site) -> None:
    """Small files; rewritten by each run with HEADRACE_PICTURES=1 alone, for a picture differs a little each time."""
    folder = IMAGES if os.environ.get("HEADRACE_PICTURES") else site.data
    await measuring(site.proof, site.data)
    for n in range(4):
        await chat(site.proof, f"say {12 + n}: sort this list in Python")
        await chat(site.proof, f"say {9 + n}: 日本の首都はどこですか。", headrace={"worker": "laptop"})
    await asyncio.gather(*(chat(site.proof, f"say 90 every 40 ms: translate chapter {n}", **LONG) for n in range(6)))
    for scheme in ("light", "dark"):
        async with opened(browser, site.url, color_scheme=scheme) as page:
            await until_live(page)
            await asked(page, "Tell me a story of a mill and its race.", "model:qwen3")
            await page.locator("article[data-state=completed]").wait_for()
            busy = [
                asyncio.ensure_future(chat(site.proof, f"say 300 every 60 ms: translate part {n}", **LONG))
                for n in range(6)
            ]
            await row(page, "waiting", "chat").nth(2).wait_for()
            await row(page, "running", "chat").nth(2).wait_for()
            await page.evaluate("document.activeElement.blur()")
            await page.set_viewport_size({"width": 1280, "height": 1400})
            await page.screenshot(path=folder / f"page-{scheme}.png", animations="disabled")
            if scheme == "light":
                await page.set_viewport_size(PHONE)
                await page.locator("#fleet").scroll_into_view_if_needed()
                await page.evaluate(TWO_FRAMES)  # rows that were out of sight are laid out in the second
                await page.screenshot(path=folder / "page-phone.png", animations="disabled")
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
        await site.proof.quiet()
    assert all((folder / f"page-{name}.png").stat().st_size < 300_000 for name in ("light", "dark", "phone"))
