"""Models come to one named machine, for an admin, with progress; nothing else changes what a machine holds."""

from __future__ import annotations

import asyncio
import hashlib

import httpx
import msgspec
import ollama
import pytest

from schemas.work import PullFault, PullProgress
from services.router.http.access import Access
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.runtime.settings import Key
from support.eventually import PATIENCE_S
from support.router_port import DESKTOP, MemoryRouter

MANIFEST = PullProgress(status="pulling manifest")
HALF = PullProgress(status="pulling d1", digest="sha256:d1", total=100, completed=50)
SUCCESS = PullProgress(status="success", done=True)


@pytest.fixture
def router() -> MemoryRouter:
    router = MemoryRouter()
    router.pull_words = [MANIFEST, HALF, SUCCESS]
    return router


async def test_the_official_client_reads_the_progress(url: str, router: MemoryRouter) -> None:
    async with ollama.AsyncClient(host=url, timeout=PATIENCE_S) as client:
        said = [part async for part in await client.pull("qwen3:8b", stream=True)]
    assert [part.status for part in said] == ["pulling manifest", "pulling d1", "success"]
    assert (said[1].digest, said[1].total, said[1].completed) == ("sha256:d1", 100, 50)
    assert router.pulls == [("w-1", "qwen3:8b")]  # the only machine with an Ollama


@pytest.mark.parametrize("worker", ["desktop", "w-1"])
async def test_a_machine_is_named_in_the_body(wire: httpx.AsyncClient, router: MemoryRouter, worker: str) -> None:
    reply = await wire.post("/api/pull", json={"model": "m", "worker": worker, "stream": False})
    assert reply.json() == {"status": "success"}
    assert router.pulls == [("w-1", "m")]


async def test_among_several_machines_one_must_be_named(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    other = msgspec.structs.replace(DESKTOP, id="w-3", name="attic")
    router.view = msgspec.structs.replace(router.view, workers={**router.view.workers, "w-3": other})
    reply = await wire.post("/api/pull", json={"model": "m"})
    assert reply.status_code == 400
    assert "attic, desktop" in reply.json()["error"]


async def test_without_an_ollama_anywhere_that_is_said(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    others = {id: worker for id, worker in router.view.workers.items() if worker.backend != "ollama"}
    router.view = msgspec.structs.replace(router.view, workers=others)
    reply = await wire.post("/api/pull", json={"model": "llama3"})
    assert reply.status_code == 400
    assert "nobody here has 'llama3' or an Ollama that could fetch it" in reply.json()["error"]


@pytest.mark.parametrize(
    ("worker", "status", "words"),
    [("laptop", 400, "llama.cpp, which cannot fetch models"), ("nobody", 400, "no worker is called")],
)
async def test_only_an_ollama_can(wire: httpx.AsyncClient, worker: str, status: int, words: str) -> None:
    reply = await wire.post("/api/pull", json={"model": "m", "worker": worker})
    assert reply.status_code == status
    assert words in reply.json()["error"]


async def test_a_machine_that_is_silent_is_asked_nothing(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    asleep = msgspec.structs.replace(DESKTOP, alive=False)
    router.view = msgspec.structs.replace(router.view, workers={asleep.id: asleep})
    reply = await wire.post("/api/pull", json={"model": "m", "worker": "desktop"})
    assert (reply.status_code, router.pulls) == (503, [])


async def test_an_error_after_the_first_word_is_the_last_line(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.pull_words = [MANIFEST, PullProgress(error="file does not exist", code="not_found")]
    reply = await wire.post("/api/pull", json={"model": "m"})
    assert reply.status_code == 200
    assert msgspec.json.decode(reply.content.splitlines()[-1]) == {"error": "file does not exist"}


@pytest.mark.parametrize(
    ("code", "status", "words"),
    [
        ("not_found", 404, "model 'm' not found: it said so"),
        ("rejected", 400, "it said so"),
        ("unavailable", 503, "it said so"),
        (None, 503, "it said so"),  # a worker of before
    ],
)
async def test_a_model_that_did_not_come_has_a_status_that_says_whether_to_try_again(
    wire: httpx.AsyncClient, router: MemoryRouter, code: PullFault | None, status: int, words: str
) -> None:
    router.pull_words = [MANIFEST, PullProgress(error="it said so", code=code)]
    reply = await wire.post("/api/pull", json={"model": "m", "stream": False})
    assert (reply.status_code, reply.json()) == (status, {"error": words})
    assert ("retry-after" in reply.headers) == (status == 503)


async def test_whoever_leaves_ends_the_download(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.pull_words = [MANIFEST]
    async with wire.stream("POST", "/api/pull", json={"model": "m"}) as reply:
        await anext(reply.aiter_lines())
        assert not router.pulls_left.is_set()
    await asyncio.wait_for(router.pulls_left.wait(), PATIENCE_S)


async def test_only_an_admins_key_may_have_a_model_fetched(router: MemoryRouter) -> None:
    keys = {
        name: Key(sha256=hashlib.sha256(name.encode()).hexdigest(), admin=name == "boss") for name in ("boss", "me")
    }
    async with (
        serving(create_app(router, access=Access(keys=keys)), "127.0.0.1", 0, drain_s=1) as url,
        httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE_S) as http,
    ):
        said = {}
        for name in keys:
            bearer = {"authorization": f"Bearer {name}"}
            reply = await http.post("/api/pull", json={"model": "m", "stream": False}, headers=bearer)
            said[name] = (reply.status_code, "admin" in reply.text)
    assert said == {"boss": (200, False), "me": (403, True)}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "/api/delete"),
        ("POST", "/api/create"),
        ("POST", "/api/copy"),
        ("POST", "/api/push"),
        ("POST", "/api/blobs/sha256:00"),
    ],
)
async def test_what_would_change_a_machine_otherwise_is_refused_with_the_reason(
    wire: httpx.AsyncClient, method: str, path: str
) -> None:
    reply = await wire.request(method, path, json={"model": "qwen3"})
    assert reply.status_code == 403
    assert reply.json()["error"].startswith("the router ")
