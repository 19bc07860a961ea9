"""The page as a browser gets it, without a browser: whole, safe, live, in two languages, and only for who may see it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from html.parser import HTMLParser
from typing import Any

import httpx
import msgspec
import pytest

from schemas.demands import Measuring
from schemas.errors import HeadraceError
from schemas.events import Choice, Measure
from services.router.fleet import Fleet
from services.router.http.access import Access
from services.router.http.app import create_app
from services.router.http.page.rendering import static
from services.router.http.page.words import WORDS
from services.router.http.serving import serving
from services.router.port import Rise
from services.runtime.settings import Http, Key
from support.eventually import PATIENCE_S, eventually
from support.router_port import DESKTOP, MemoryRouter
from support.wide_stats import household

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
HOSTILE = """"><script>alert('x')</script><img src=x onerror=alert(1)>'--"""
VOID = {"meta", "link", "input", "img", "br"}


class Read(HTMLParser):
    """Which tags and attributes a browser would see; ``faults`` are tags that do not close as they should."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        self.faults += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"/{tag}")

    def named(self, name: str) -> list[str | None]:
        return [value for key, value in self.attributes if key == name]


async def page(http: httpx.AsyncClient, **headers: str) -> str:
    answer = await http.get("/", headers=BROWSER | headers)
    assert answer.status_code == 200, answer.text
    return answer.text


async def events(wire: httpx.AsyncClient, since: str = "") -> AsyncGenerator[tuple[str, dict[str, Any]]]:
    async with wire.stream("GET", "/page/events", params={"since": since}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        name = ""
        async for line in answer.aiter_lines():
            if line.startswith("id: "):
                name = line.removeprefix("id: ")
            elif line.startswith("data: "):
                yield name, json.loads(line.removeprefix("data: "))


async def test_browsers_get_the_page_and_programs_what_they_always_got(http: httpx.AsyncClient) -> None:
    assert (await page(http)).startswith("<!doctype html>")
    for accept in ("*/*", "application/json"):
        answer = await http.get("/", headers={"accept": accept})
        assert answer.headers["content-type"].startswith("text/plain") and "POST /route" in answer.text
        assert answer.headers["vary"] == "accept"


async def test_the_page_is_whole_and_everything_on_it_is_its_own(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.numbers = household()[0]
    await http.post("/route", json={"prompt": "hi"})
    html = await page(http)
    read = Read(html)
    assert read.faults == []
    ids = Counter(read.named("id"))
    assert [name for name, count in ids.items() if count > 1] == []
    assert all(name in ids for name in read.named("aria-labelledby"))
    assert all(
        link.startswith(("/", "?", "#")) for name in ("href", "src", "action") for link in read.named(name) if link
    )
    assert (
        not read.named("style") and "style" not in read.tags and not re.search(r"<script(?! type=\S+ (src|id)=)", html)
    )
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    for tag in ("header", "nav", "main", "h1"):
        assert read.tags[tag]


async def test_nothing_may_come_from_elsewhere(http: httpx.AsyncClient) -> None:
    answer = await http.get("/", headers=BROWSER)
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert (
        policy["default-src"] == "'none'" and policy["frame-ancestors"] == "'none'" and policy["base-uri"] == "'none'"
    )
    assert {policy[kind] for kind in ("script-src", "style-src", "connect-src", "img-src", "form-action")} == {"'self'"}
    assert answer.headers["cache-control"] == "no-store" and answer.headers["x-content-type-options"] == "nosniff"
    for name, (data, _) in static().files.items():
        outside = [link for link in re.findall(r"https?://[^\s\"')]+", data.decode()) if "www.w3.org" not in link]
        assert outside == [], name


async def test_files_are_kept_for_ever_under_their_digest_and_asked_for_again_under_an_old_one(
    http: httpx.AsyncClient,
) -> None:
    html = await page(http)
    css, script = re.findall(r'(?:href|src)="(/page/static/[^"]+\.(?:css|js))"', html)
    for path, media in ((css, "text/css"), (script, "text/javascript")):
        answer = await http.get(path)
        assert answer.headers["content-type"].startswith(media) and "immutable" in answer.headers["cache-control"]
    old = await http.get("/page/static/000000000000/page.css")
    assert (old.status_code, old.headers["cache-control"]) == (200, "no-cache")
    for path in ("/page/static/x/none.js", "/page/static/x/..%2fwords.py"):
        assert (await http.get(path)).status_code == 404


async def test_hostile_names_stay_text(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    plain = Read(await page(http))
    info = msgspec.structs.replace(DESKTOP.models["qwen3"], name=HOSTILE)
    worker = msgspec.structs.replace(
        DESKTOP,
        id=f"w-{HOSTILE}",
        name=HOSTILE,
        models={HOSTILE: info},
        backend=HOSTILE,
        others_use=None,
        others_reason=HOSTILE,
    )
    router.view = Fleet(workers={worker.id: worker})
    router.script = None
    await http.post("/route", json={"prompt": "hi", "client": HOSTILE[:100], "constraints": {"domain": HOSTILE}})
    await router.last.move(
        reason=f"busy: {HOSTILE}", model=HOSTILE, expected_worker=worker.id,
        choice=Choice(model=HOSTILE, worker=worker.id, reason=HOSTILE),
    )  # fmt: skip
    # An own application: the page of this one was looked at a moment ago.
    transport = httpx.ASGITransport(app=create_app(router))
    async with httpx.AsyncClient(transport=transport, base_url="http://router") as again:
        html = await page(again)
        why = (await again.get("/page/explain/t1")).text
    read = Read(html)
    assert html.count("alert") > 6 and "<script>alert" not in html and "<img" not in html
    assert read.faults == [] and read.tags["script"] == plain.tags["script"] and read.tags["img"] == 0
    assert not [name for name, _ in (*read.attributes, *Read(why).attributes) if name.startswith("on")]
    assert Read(why).faults == [] and "<script>alert" not in why


async def test_everything_is_said_in_japanese_too_and_the_choice_is_kept(http: httpx.AsyncClient) -> None:
    english, japanese = (
        await page(http, **{"accept-language": "en"}),
        await page(http, **{"accept-language": "ja,en;q=0.3"}),
    )
    assert '<html lang="en"' in english and '<html lang="ja"' in japanese
    for key in ("fleet", "queue", "decisions", "map", "send", "pause", "state_stale"):
        assert WORDS[key][0] in english and WORDS[key][1] in japanese
    chosen = await http.get("/?lang=ja&theme=dark", headers=BROWSER)
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/")
    html = await page(http)  # the client kept the cookies
    assert '<html lang="ja" data-theme="dark"' in html
    assert '<html lang="ja"' in await page(http, cookie="headrace_lang=ja; headrace_theme=%22%3E")


async def test_a_decision_is_explained_on_its_own_page_and_as_a_part(http: httpx.AsyncClient) -> None:
    await http.post("/route", json={"prompt": "hi"})
    whole, part = await http.get("/page/explain/t1"), await http.get("/page/explain/t1?part=1")
    assert Read(whole.text).faults == [] == Read(part.text).faults
    assert part.text.strip() in whole.text and "<html" not in part.text
    for word in ("qwen3", WORDS["part_decode_s"][0], WORDS["losing"][0], "llama3.2:3b"):
        assert word in part.text
    assert (await http.get("/page/explain/none")).status_code == 404


async def test_whoever_looks_is_told_what_changes_and_no_more(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.script = None
    seen = events(wire)
    version, whole = await anext(seen)
    assert whole["regions"]["fleet"]["order"] == ["w-1", "w-2"] and whole["counts"]["machines"] == "2/2"
    await wire.post("/workers/desktop/pause")
    _, step = await anext(seen)
    assert list(step["regions"]) == ["fleet"] and list(step["regions"]["fleet"]["rows"]) == ["w-1"]
    assert WORDS["state_paused"][0] in step["regions"]["fleet"]["rows"]["w-1"]
    await wire.post("/route", json={"prompt": "hi"})
    _, step = await anext(seen)
    assert list(step["regions"]["waiting"]["rows"]) == ["t1"] and step["counts"] == {"waiting": "1"}
    assert WORDS["hold_routing"][0] in step["regions"]["waiting"]["rows"]["t1"]
    await router.last.start()
    last, step = await anext(seen)
    assert step["regions"]["waiting"] == {"gone": ["t1"]} and "t1" in step["regions"]["running"]["rows"]
    await seen.aclose()
    missed = events(wire, version)
    assert [(await anext(missed))[0].rpartition("-")[2] for _ in range(3)] == ["2", "3", "4"]
    await missed.aclose()
    stranger = events(wire, "another-router-7")
    again, told = await anext(stranger)
    assert again == last and told["regions"]["running"]["order"] == ["t1"]
    await stranger.aclose()


async def test_a_quality_that_nobody_judged_says_so(
    http: httpx.AsyncClient, router: MemoryRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    await http.post("/route", json={"prompt": "hi"})
    decided = router._decision(router.last.asked)

    async def shown(quality: Measure) -> str:
        candidate = msgspec.structs.replace(decided.candidates[0], quality=quality)
        routed = msgspec.structs.replace(decided, candidates=(candidate,))
        monkeypatch.setattr(router, "_decision", lambda _asked: routed)
        return (await http.get("/page/explain/t1?part=1")).text

    guess, judged = WORDS["guess"][0], WORDS["evidence"][0]
    assert f">48 of 100, {guess}<" in await shown(Measure(value=0.48, level="prior", n=0))
    assert f">70 of 100, 3 {judged}<" in await shown(Measure(value=0.7, level="model", n=3))


async def test_what_made_a_place_and_a_start_worse_is_said_once(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.script = None
    await http.post("/route", json={"prompt": "hi"})
    rises = tuple(Rise(of=of, before=1, after=2, code="died", words="x") for of in ("position", "eta_s"))
    await router.last.move(rises=rises)
    assert (await page(http)).count(WORDS["rise_died"][0]) == 1


async def test_what_is_unknown_looks_it_in_both_languages(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    silent = msgspec.structs.replace(DESKTOP, alive=False)
    router.view = Fleet(workers={silent.id: silent})
    router.script = None
    await http.post("/route", json={"prompt": "hi", "constraints": {"domain": "unknown"}})
    html = await page(http, **{"accept-language": "ja"})
    assert WORDS["unknown_silent"][1] in html and "<meter" not in html
    assert f'unknown" data-why data-key="why" href="/page/explain/t1">{WORDS["unknown"][1]}</a>' in html


async def test_nobody_looks_and_nothing_is_computed(
    wire: httpx.AsyncClient, router: MemoryRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def recent(_most: int) -> tuple[()]:
        nonlocal looks
        looks += 1
        return ()

    monkeypatch.setattr(router, "recent", recent)
    watched = [events(wire) for _ in range(5)]
    for each in watched:
        await anext(each)
    assert looks == 1, "five who look cost one look"
    await eventually(lambda: looks >= 2)
    for each in watched:
        await each.aclose()
    before = -1

    def still() -> bool:
        nonlocal before
        before, unchanged = looks, before == looks
        return unchanged

    await eventually(still, every_s=1.2)


async def test_a_page_without_machines_says_what_to_run_next(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.view = Fleet()
    html = await page(http)
    assert (
        "<code>headrace up</code>" in html and "<code>headrace up --lan</code>" in html and "<code>/v1</code>" in html
    )


async def test_what_takes_no_work_promises_no_slot_and_says_why(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    refused = "cannot connect to http://127.0.0.1:11434"
    down = msgspec.structs.replace(DESKTOP, backend_up=False, backend_reason=refused)
    paused = msgspec.structs.replace(
        DESKTOP, id="w-9", name="attic", paused=True, paused_until_us=1_764_460_800_000_000
    )
    router.view = Fleet(workers={worker.id: worker for worker in (down, paused)})
    html = await page(http)
    assert html.count(f'data-label="{WORDS["next_slot"][0]}">–<') == 2 and refused in html
    assert 'data-at="1764460800.0"' in html and "2025-11-30T00:00:00Z" in html


async def test_what_runs_longer_than_predicted_says_by_how_much_and_what_failed_why(
    http: httpx.AsyncClient, router: MemoryRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    router.script = None
    await http.post("/route", json={"prompt": "hi"})
    await router.last.start()
    await router.last.move(ran_s=22.0, ends_s=3.3, late_s=12.0)
    failed = msgspec.structs.replace(router.last.status, task="t0", state="failed", failure="stall", detail="no token")
    monkeypatch.setattr(router, "recent", lambda _most: (failed,))
    html = await page(http)
    assert "12 s longer than predicted" in html and "data-until" not in html and "stall: no token" in html


async def test_the_page_says_whether_anything_is_measured_unasked(
    http: httpx.AsyncClient, router: MemoryRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def told() -> str:
        return (await http.get("/page/measuring")).raise_for_status().text

    assert await told() == WORDS["measuring_due"][0].format(1)

    async def off() -> Measuring:
        return Measuring(on=False)

    async def nobody() -> Measuring:
        raise HeadraceError("no benchmarker answers")

    monkeypatch.setattr(router, "bench_owed", off)
    assert await told() == WORDS["measuring_off"][0]
    monkeypatch.setattr(router, "bench_owed", nobody)
    assert await told() == WORDS["measuring_nobody"][0]


async def test_a_large_page_is_packed_for_who_takes_it(router: MemoryRouter) -> None:
    router.script = None
    transport = httpx.ASGITransport(app=create_app(router))
    async with httpx.AsyncClient(transport=transport, base_url="http://router") as client:
        for _ in range(40):
            await client.post("/route", json={"prompt": "hi"})
        whole = await client.get("/", headers=BROWSER | {"accept-encoding": "identity"})
        packed = await client.get("/", headers=BROWSER)
    assert "content-encoding" not in whole.headers and packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) * 4 < len(whole.content)
    assert packed.text.partition("data-now")[0] == whole.text.partition("data-now")[0]


KEY = 'a key; with "signs" and ключ'


@pytest.fixture
async def guarded(router: MemoryRouter) -> AsyncIterator[httpx.AsyncClient]:
    """The router as another machine of the house sees it, with one key."""
    keys = {"me": Key(sha256=hashlib.sha256(KEY.encode()).hexdigest(), admin=True)}
    app = create_app(router, access=Access(keys=keys))
    transport = httpx.ASGITransport(app=app, client=("192.168.1.9", 4000))
    async with httpx.AsyncClient(transport=transport, base_url="http://router.lan") as client:
        yield client


async def test_without_a_key_the_page_asks_for_one_and_keeps_it_where_no_script_can_read_it(
    guarded: httpx.AsyncClient, router: MemoryRouter
) -> None:
    asked = await guarded.get("/", headers=BROWSER)
    assert asked.status_code == 401 and 'type="password"' in asked.text and "desktop" not in asked.text
    assert "Basic" not in asked.headers["www-authenticate"] and Read(asked.text).faults == []
    assert (await guarded.get(re.findall(r'href="(/page/static/[^"]+css)"', asked.text)[0])).status_code == 200
    for path in ("/page/events", "/page/explain/t1", "/queue"):
        assert (await guarded.get(path)).status_code == 401
    assert (await guarded.get("/", headers={"accept": "*/*"})).status_code == 401

    wrong = await guarded.post("/page/sign-in", data={"key": "guess"})
    assert wrong.status_code == 401 and WORDS["key_unknown"][0] in wrong.text and "set-cookie" not in wrong.headers
    right = await guarded.post("/page/sign-in", data={"key": KEY})
    cookie = right.headers["set-cookie"].lower()
    assert right.status_code == 303 and "httponly" in cookie and "samesite=strict" in cookie
    html = await page(guarded)
    assert "desktop" in html and WORDS["sign_out"][0] in html
    assert (await guarded.post("/route", json={"prompt": "hi"})).status_code == 202
    assert router.last.asked.client == "me"

    await guarded.post("/page/sign-out")
    assert (await guarded.get("/", headers=BROWSER)).status_code == 401


async def test_a_page_of_another_site_changes_nothing_not_even_with_the_cookie(
    guarded: httpx.AsyncClient, router: MemoryRouter
) -> None:
    await guarded.post("/page/sign-in", data={"key": KEY})
    for origin in ("https://evil.example", "null", "http://router.lan:3000"):
        sent = await guarded.post("/route", content='{"prompt": "hi"}', headers={"origin": origin})
        error = sent.json()["error"]
        assert (sent.status_code, error["code"]) == (403, "forbidden") and origin in error["message"]
    assert not router.plays
    own = {"origin": "http://router.lan"}
    assert (await guarded.post("/route", json={"prompt": "hi"}, headers=own)).status_code == 202
    shown = {"origin": "https://chat.example", "authorization": "Bearer x"}
    keyed = await guarded.post("/route", json={"prompt": "hi"}, headers=shown)
    assert keyed.status_code == 401, "a wrong key beside the cookie is a wrong key"


async def test_a_strangers_name_that_leads_here_gets_nothing(router: MemoryRouter) -> None:
    """DNS rebinding: the page of evil.example asks evil.example, which is now 127.0.0.1."""
    rebound = {"host": "evil.example:8420"}
    transport = httpx.ASGITransport(app=create_app(router), client=("127.0.0.1", 4000))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420") as client:
        for path in ("/", "/queue", "/v1/models", "/page/events"):
            answer = await client.get(path, headers=rebound | BROWSER)
            assert answer.status_code == 403 and "desktop" not in answer.text
        sent = await client.post(
            "/route", json={"prompt": "hi"}, headers=rebound | {"origin": "http://evil.example:8420"}
        )
        assert sent.status_code == 403 and "[http] hosts" in sent.json()["error"]["message"] and not router.plays
        assert (await client.get("/healthz", headers=rebound)).status_code == 200
        assert (await client.get("/queue")).status_code == 200
    app = create_app(router, access=Access(http=Http(hosts=("llm.example.org",))))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://llm.example.org") as client:
        assert (await client.get("/queue")).status_code == 200


async def test_a_look_that_fails_ends_no_line(
    wire: httpx.AsyncClient, router: MemoryRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = events(wire)
    await anext(seen)
    broken = asyncio.Event()

    def recent(_most: int) -> tuple[()]:
        broken.set()
        raise RuntimeError("a fault of the router")

    monkeypatch.setattr(router, "recent", recent)
    await asyncio.wait_for(broken.wait(), PATIENCE_S)
    monkeypatch.undo()
    await wire.post("/workers/laptop/pause")
    _, step = await anext(seen)
    assert list(step["regions"]["fleet"]["rows"]) == ["w-2"]
    await seen.aclose()


async def test_an_open_page_does_not_hold_up_a_router_that_stops(router: MemoryRouter) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        httpx.AsyncClient(trust_env=False, timeout=PATIENCE_S) as client,
        AsyncExitStack() as server,
    ):
        url = await server.enter_async_context(serving(create_app(router), "127.0.0.1", 0, drain_s=60))
        async with client.stream("GET", f"{url}/page/events") as answer:
            lines = answer.aiter_lines()
            await anext(lines)
            await server.aclose()
            assert [line async for line in lines][-1] == "", "it ended, and was not broken off"
