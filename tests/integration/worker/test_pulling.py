"""A download from the router's port to a model server and back, over a real nats-server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from schemas.work import PullProgress
from services.router.pulling import Pulling, words
from services.runtime.bus import Bus
from services.runtime.ids import new_id
from services.runtime.server import EmbeddedServer
from support.backends import Hang, Script, Stub, line, ollama_stand_in, vllm_stand_in
from support.eventually import PATIENCE_S, eventually
from support.worker_bench import WORKER, Bench, running_worker

FILE = {"status": "pulling d1", "digest": "sha256:d1", "total": 100}
WHOLE = Script(
    [
        line({"status": "pulling manifest"}),
        line({**FILE, "completed": 10}),
        line({**FILE, "completed": 100}),
        line({"status": "success"}),
    ]
)


class Router(Pulling):
    """The part of the router that this is about."""

    def __init__(self, bus: Bus) -> None:
        self._bus, self._router, self._new_id = bus, "r-1", new_id


@pytest.fixture
async def bench(bus: Bus) -> Bench:
    bench = Bench(bus)
    await bench.start()
    return bench


@pytest.fixture
async def ollama() -> AsyncIterator[Stub]:
    async with ollama_stand_in() as stub:
        yield stub


@asynccontextmanager
async def listening(natsd: EmbeddedServer, bench: Bench, url: str) -> AsyncIterator[None]:
    """A worker that hears what it is told."""
    async with running_worker(natsd.url, url):
        await eventually(lambda: bench.loads)
        yield


async def all_of(router: Router, model: str) -> list[PullProgress]:
    async with router.pull(WORKER, model) as said:
        return [word async for word in said]


async def test_progress_comes_back_and_the_model_is_reported(bench: Bench, natsd: EmbeddedServer, ollama: Stub) -> None:
    async with listening(natsd, bench, ollama.url):
        ollama.scripts.append(WHOLE)
        said = await all_of(Router(bench.bus), "new:1b")
    assert said[-1] == PullProgress(status="success", done=True)
    assert PullProgress(status="pulling d1", digest="sha256:d1", total=100, completed=100) in said
    assert [seen.body["model"] for seen in ollama.requests if seen.path == "/api/pull"] == ["new:1b"]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("pull model manifest: file does not exist", "not_found"),
        ('pull model manifest: 400: {"error":"Repository is not GGUF"}', "rejected"),
        ('pull model manifest: Get "https://registry.example": dial tcp: lookup failed: no such host', "unavailable"),
        ("max retries exceeded: write: no space left on device", "unavailable"),
    ],
)
async def test_what_the_server_says_against_it_is_the_last_word_and_says_whether_to_try_again(
    bench: Bench, natsd: EmbeddedServer, ollama: Stub, said: str, code: str
) -> None:
    async with listening(natsd, bench, ollama.url):
        ollama.scripts.append(Script([line({"status": "pulling manifest"}), line({"error": said})]))
        last = (await all_of(Router(bench.bus), "nope"))[-1]
    assert (last.error, last.code) == (said, code)


async def test_a_name_that_is_none_is_the_requests_fault(bench: Bench, natsd: EmbeddedServer, ollama: Stub) -> None:
    async with listening(natsd, bench, ollama.url):
        ollama.scripts.append(Script([line({"error": "invalid model name"})], status=400))
        last = (await all_of(Router(bench.bus), "a//b"))[-1]
    assert (last.error, last.code) == ("HTTP 400: invalid model name", "rejected")


async def test_one_at_a_time_and_whoever_leaves_ends_it(bench: Bench, natsd: EmbeddedServer, ollama: Stub) -> None:
    router = Router(bench.bus)
    async with listening(natsd, bench, ollama.url):
        ollama.scripts.append(Script([line({**FILE, "completed": 10}), Hang()]))
        async with router.pull(WORKER, "big:70b") as said:
            assert (await anext(said)).completed == 10
            (refused,) = await all_of(router, "other:1b")
            assert "downloading big:70b already" in str(refused.error)
            assert refused.code == "unavailable"
        await asyncio.wait_for(ollama.client_gone.wait(), PATIENCE_S)
        ollama.scripts.append(WHOLE)
        assert (await all_of(router, "other:1b"))[-1].done


async def test_a_server_that_cannot_fetch_says_so(bench: Bench, natsd: EmbeddedServer) -> None:
    async with vllm_stand_in() as vllm, listening(natsd, bench, vllm.url):
        (word,) = await all_of(Router(bench.bus), "m")
    assert "the vllm beside this worker cannot fetch models" in str(word.error)


async def test_a_machine_that_is_gone_is_an_error() -> None:
    heard: asyncio.Queue[PullProgress] = asyncio.Queue()
    heard.put_nowait(PullProgress(status="pulling manifest"))
    heard.put_nowait(PullProgress(status="pulling manifest"))  # its beat, not news
    said = [word async for word in words(heard, silence_s=0.05)]
    assert [word.status for word in said] == ["pulling manifest", ""]
    assert "nothing was heard of the machine" in str(said[-1].error)
