"""A finished answer as the page asks for it: for who may see it, as strictly as the page itself, and only when there is one."""

from __future__ import annotations

import hashlib

import httpx
import pytest

from services.router.http.access import Access
from services.router.http.app import create_app
from services.router.http.page.words import WORDS
from services.runtime.settings import Key
from support.router_port import MemoryRouter

FENCE = "```\n<script>alert(1)</script>\n```"


@pytest.fixture(autouse=True)
def played_by_the_test(router: MemoryRouter) -> None:
    router.script = None


async def test_a_finished_answer_comes_as_html_under_the_pages_policy(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    await http.post("/route", json={"prompt": "hi"})
    await router.last.start()
    await router.last.say(FENCE)
    assert (await http.get("/page/answer/t1")).status_code == 404, "it is not finished"
    await router.last.complete()
    answer = await http.get("/page/answer/t1", headers={"accept-language": "ja"})
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    assert "<code>&lt;script&gt;" in answer.text and f'aria-label="{WORDS["code"][1]}"' in answer.text
    page = await http.get("/", headers={"accept": "text/html"})
    for name in ("content-security-policy", "x-content-type-options", "cache-control"):
        assert answer.headers[name] == page.headers[name]


@pytest.mark.parametrize("text", ["Hello world", "", "*a*" * 20_000])
async def test_what_is_best_as_it_was_written_has_no_content(
    http: httpx.AsyncClient, router: MemoryRouter, text: str
) -> None:
    await http.post("/route", json={"prompt": "hi"})
    await router.last.start()
    await router.last.complete(text)
    answer = await http.get("/page/answer/t1")
    assert (answer.status_code, answer.content) == (204, b"")


@pytest.mark.parametrize("task", ["none", "..%2froutes", "%3Cscript%3E"])
async def test_an_unknown_task_has_none(http: httpx.AsyncClient, task: str) -> None:
    answer = await http.get(f"/page/answer/{task}")
    assert answer.status_code == 404 and answer.headers["content-type"] == "application/json"


async def test_a_task_that_failed_or_was_cancelled_has_none(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    for name in ("t1", "t2"):
        await http.post("/route", json={"prompt": "hi"})
        await router.last.start()
        await router.last.say(FENCE)
        await (router.last.cancel("stopped") if name == "t1" else router.last.fail("stall"))
        assert (await http.get(f"/page/answer/{name}")).status_code == 404


async def test_without_a_key_nobody_reads_it(router: MemoryRouter) -> None:
    keys = {"me": Key(sha256=hashlib.sha256(b"mine").hexdigest())}
    app = create_app(router, access=Access(keys=keys))
    transport = httpx.ASGITransport(app=app, client=("192.168.1.9", 4000))
    async with httpx.AsyncClient(transport=transport, base_url="http://router.lan") as client:
        known = {"authorization": "Bearer mine"}
        await client.post("/route", json={"prompt": "hi"}, headers=known)
        await router.last.start()
        await router.last.complete(FENCE)
        assert (await client.get("/page/answer/t1")).status_code == 401
        assert (await client.get("/page/answer/t1", headers=known)).status_code == 200
