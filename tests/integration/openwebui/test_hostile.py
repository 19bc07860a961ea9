"""The function where what lies between it and its router is in the way, is something else, or goes away in mid-answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.types import Receive, Scope, Send

from schemas.events import TaskCompleted, TaskSubmitted, Terminal
from services.router.http.access import Access
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from services.runtime.settings import Key
from support.eventually import PATIENCE_S, eventually
from support.function_desk import Desk, Make, collect, text
from support.functions import bridge_module, pipe_module
from support.paced_backend import MODEL, PacedBackend
from support.routers import dispatching, running_router, with_workers
from support.worker_bench import running_worker

Json = dict[str, Any]
WORDS = "".join(f"word{n} " for n in range(90))


Answer = tuple[int, Mapping[str, str], Sequence[bytes]]
NOBODY: Answer = (404, {}, (b"<html>nobody is here",))


class Says:
    """Something that answers each path with (status, headers, pieces of its body); 404 and a page for any other."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.state = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path"].strip("/").replace("/", "_")
        self.asked.append(f"{scope['method']} {scope['path']}")
        status, headers, pieces = self.answers.get(name) or self.answers.get("all", NOBODY)
        pairs = [(key.encode(), value.encode()) for key, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": pairs})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


@asynccontextmanager
async def beside(there: Any) -> AsyncIterator[str]:
    async with serving(there, "127.0.0.1", 0, drain_s=1) as url:
        yield url


async def asked_at(url: str, key: str = "", **valves: Any) -> list[Json]:
    function = pipe_module.Pipe()
    function.valves = function.Valves(ROUTER_URL=url, API_KEY=key, POLL_INTERVAL=0.02, **valves)
    body = {"stream": True, "messages": [{"role": "user", "content": "hi"}]}
    return await collect(await function.pipe(body, __chat_id__="chat-1", __message_id__="message-1"))


PAGE = (b"<html><h1>a page of somebody's</h1>",)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((200, {}, PAGE), "is no Headrace router (status 200); the valve ROUTER_URL names it"),
        ((204, {}, ()), "is no Headrace router (status 204)"),
        ((200, {}, (b'{"hello": "world"}',)), "is no Headrace router (status 200)"),
        ((404, {}, PAGE), "is no Headrace router (status 404)"),
        ((413, {}, PAGE), "takes no question of this size (status 413)"),
        ((502, {}, PAGE), "cannot be reached behind http://127.0.0.1"),
        (
            (301, {"location": "https://h/x"}, ()),
            "leads on to https://h/x (status 301); the valve ROUTER_URL must name",
        ),
        ((500, {}, (b"[" * 100_000,)), "is no Headrace router (status 500)"),
    ],
)
async def test_what_is_no_router_is_told_in_words(answer: Answer, words: str) -> None:
    async with beside(Says(all=answer)) as url:
        (refused,) = await asked_at(url)
        assert words in refused["error"]["message"]
        function = pipe_module.Pipe()
        function.valves = function.Valves(ROUTER_URL=url, VIRTUAL_MODELS=True)
        assert [row["id"] for row in await function.pipes()] == ["auto"]


@pytest.mark.parametrize("url", ["", "http://[::1", "ftp://127.0.0.1", "http://127.0.0.1:99999", "   ", "http://"])
async def test_an_address_that_is_none_is_told_by_its_valve(url: str) -> None:
    (refused,) = await asked_at(url)
    assert "ROUTER_URL" in refused["error"]["message"]


@pytest.mark.parametrize("key", ["clé", "one\ntwo"])
async def test_a_key_that_is_none_is_told_and_not_shown(key: str) -> None:
    async with beside(Says()) as url:
        (refused,) = await asked_at(url, key)
    assert "API_KEY" in refused["error"]["message"]
    assert key not in refused["error"]["message"] and "two" not in refused["error"]["message"]


def sse(name: str, data: Json) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


async def test_an_answer_that_comes_byte_by_byte_is_whole_in_every_script() -> None:
    said = "水車小屋 🧭 naïve\u2028\x85 end"
    tokens = [{"attempt": 1, "text": said[:4]}, {"attempt": 1, "text": said[4:]}]
    end = {"status": {"state": "completed"}, "answer": {"attempt": 1, "text": said, "model": "m"}, "worker_name": None}
    stream = b"".join(
        (b"not a field\n\n: keep-alive\n\nevent: token\ndata: no json\n\n", *(sse("token", t) for t in tokens), sse("end", end))
    )  # fmt: skip
    there = Says(route=(202, {}, (b'{"task": "t1"}',)), task_t1_stream=(200, {}, [bytes([byte]) for byte in stream]))
    async with beside(there) as url:
        chunks = await asked_at(url, SHOW_METADATA=False)
    assert text(chunks) == said
    assert there.asked == ["POST /route", "GET /task/t1/stream"]


class Prefixed:
    """A proxy that has the router at a path of its own."""

    def __init__(self, app: Any, prefix: str) -> None:
        self._app, self._prefix, self.state = app, prefix, app.state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].startswith(f"{self._prefix}/"):
            await Says()(scope, receive, send)
            return
        path = scope["path"].removeprefix(self._prefix)
        await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send)


async def test_a_router_at_a_path_is_asked_there(desk: Desk) -> None:
    async with beside(Prefixed(desk.line, "/ai/headrace")) as url:
        desk.url = f"{url}/ai/headrace/"
        desk.valves()
        assert text(await desk.answer("say 5")).startswith("word0 word1 word2 word3 word4 \n\n---")
        assert await bridge_module.send(desk.url, "", {"message": "message-1", "rating": 1})
        with pytest.raises(RuntimeError, match="did not take the rating"):
            await bridge_module.send(url, "", {"message": "message-1", "rating": 1})


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (502, b"<html>Bad Gateway"),
        (503, b'{"error": {"code": "unavailable", "message": "the projector does not answer"}}'),
    ],
    ids=["a proxy that has lost its router", "a router that cannot tell now"],
)
async def test_what_passes_ends_no_answer(desk: Desk, status: int, said: bytes) -> None:
    chunks = await desk.ask("say 90, every 20 ms")
    reading = asyncio.create_task(collect(chunks))
    await eventually(lambda: desk.backend.heard("say 90").said > 3)
    desk.line.away = (status, said)
    desk.line.hang_up()
    await eventually(lambda: any("does not answer" in words for words, _ in desk.statuses))
    desk.line.away = None
    assert text(await reading).startswith(f"{WORDS}\n\n---")
    assert "does not answer" not in desk.statuses[-1][0] and desk.statuses[-1][1]


async def test_a_revoked_key_ends_an_answer_with_what_came_of_it(make: Make) -> None:
    keys = {"webui": Key(sha256=hashlib.sha256(b"webui").hexdigest())}
    async with make(access=Access(keys=keys)) as desk:
        desk.valves(API_KEY=" webui\n")
        reading = asyncio.create_task(collect(await desk.ask("say 90, every 20 ms")))
        await eventually(lambda: desk.backend.heard("say 90").said > 3)
        del keys["webui"]
        keys["another"] = Key(sha256=hashlib.sha256(b"another").hexdigest())
        desk.line.hang_up()
        *chunks, last = await reading
        assert text(chunks).startswith("word0 word1")
        assert "key is not known" in last["error"]["message"] and "API_KEY" in last["error"]["message"]
        assert desk.statuses[-1][1]


async def test_a_router_that_restarts_in_mid_answer_loses_no_word_and_repeats_none(
    natsd: EmbeddedServer, bus: Bus
) -> None:
    async with AsyncExitStack() as running:
        backend = await running.enter_async_context(PacedBackend())
        await running.enter_async_context(running_worker(natsd.url, backend.url, slots=2))
        first = await running.enter_async_context(AsyncExitStack())

        async def started(life: AsyncExitStack, port: int) -> str:
            router = await life.enter_async_context(running_router(natsd.url))
            await dispatching(router)
            await with_workers(router, 1, MODEL)
            return await life.enter_async_context(serving(create_app(router), "127.0.0.1", port, drain_s=1))

        url = await started(first, 0)
        desk = Desk(bus, backend, None, url)  # type: ignore[arg-type]
        reading = asyncio.create_task(collect(await desk.ask("say 90, every 40 ms")))
        await eventually(lambda: backend.heard("say 90").said > 3)
        await first.aclose()
        await eventually(lambda: any("does not answer" in words for words, _ in desk.statuses))
        await started(running, urlsplit(url).port or 0)
        assert text(await asyncio.wait_for(reading, PATIENCE_S)).startswith(f"{WORDS}\n\n---")
        assert [type(event) for event in await desk.log(Terminal)] == [TaskCompleted]
        assert len(await desk.log(TaskSubmitted)) == 1


RATED = {"message": "message-1", "rating": 1}


@pytest.mark.parametrize(
    ("answer", "words"),
    [((200, {}, PAGE), "200"), ((404, {}, (b'{"detail": "Not Found"}',)), "404"), ((401, {}, PAGE), "401")],
)
async def test_a_rating_that_reached_no_router_is_told(answer: Answer, words: str) -> None:
    async with beside(Says(feedback=answer)) as url:
        with pytest.raises(RuntimeError, match=f"did not take the rating .{words}"):
            await bridge_module.send(url, "", RATED)


async def test_a_rating_is_said_again_behind_a_proxy_that_is_back_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_module, "WAIT_S", 0.01)
    later = (503, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, PAGE)
    async with beside(there := Says(feedback=later)) as url:
        sending = asyncio.create_task(bridge_module.send(url, "", RATED))
        await eventually(lambda: there.asked)
        there.answers["feedback"] = (200, {}, (b'{"stored": true}',))
        assert await sending
