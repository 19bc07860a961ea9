"""The function for Open WebUI, as that loads it, against a real router and worker over a paced backend."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from schemas.events import QualityJudged, TaskCancelled, TaskSubmitted, Terminal
from services.router.fullness import Places
from services.router.http.access import Access
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from services.runtime.settings import Key
from support.eventually import eventually
from support.functions import bridge_module, pipe_module
from support.paced_backend import MODEL, TALE, PacedBackend
from support.router_port import MemoryRouter
from support.routers import dispatching, running_router, whole_log, with_workers
from support.worker_bench import running_worker

Json = dict[str, Any]
KEYS = ("speaks", "alone")


class Line:
    """What lies between the function and the router: ``cut`` ends each stream after so many pieces, ``refuse`` has none."""

    def __init__(self, app: FastAPI) -> None:
        self._app, self.state = app, app.state
        self.cut: int | None = None
        self.refuse = False
        self.streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not scope["path"].endswith("/stream"):
            await self._app(scope, receive, send)
            return
        self.streams += 1
        if self.refuse:
            await send({"type": "http.response.start", "status": 502, "headers": []})
            await send({"type": "http.response.body", "body": b"<html>no stream through here"})
            return
        left = self.cut

        async def passed(message: Message) -> None:
            nonlocal left
            if left is not None and message["type"] == "http.response.body":
                left -= 1
                if left < 0:
                    raise ConnectionResetError("cut")
            await send(message)

        try:
            await self._app(scope, receive, passed)
        except ConnectionResetError:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class Desk:
    """One function with its valves, and what Open WebUI would show: ``statuses`` as (words, done)."""

    def __init__(self, bus: Bus, backend: PacedBackend, line: Line, url: str) -> None:
        self.bus, self.backend, self.line, self.url = bus, backend, line, url
        self.function = pipe_module.Pipe()
        self.statuses: list[tuple[str, bool]] = []
        self.valves()

    def valves(self, **changed: Any) -> None:
        self.function.valves = self.function.Valves(ROUTER_URL=self.url, POLL_INTERVAL=0.05, **changed)

    async def ask(self, *messages: str | Json, stream: bool = True, chat: str | None = "chat-1", **more: Any) -> Any:
        roles = ("user", "assistant")
        body = {
            "model": "headrace", "stream": stream, **more.pop("body", {}),
            "messages": [{"role": roles[n % 2], "content": m} if isinstance(m, str) else m for n, m in enumerate(messages)],
        }  # fmt: skip
        ids = {"__chat_id__": chat, "__message_id__": chat and "message-1", "__user__": {"id": "user-1"}}
        return await self.function.pipe(body, __event_emitter__=self._emit, **ids | more)

    async def answer(self, *messages: str | Json, **more: Any) -> list[Json]:
        return [chunk async for chunk in await self.ask(*messages, **more)]

    async def log(self, kind: type[Any]) -> list[Any]:
        return [event for event in await whole_log(self.bus) if isinstance(event, kind)]

    async def _emit(self, event: Json) -> None:
        assert event["type"] == "status"
        self.statuses.append((event["data"]["description"], event["data"]["done"]))


Make = Callable[..., Any]


@pytest.fixture
def make(natsd: EmbeddedServer, bus: Bus) -> Make:
    @asynccontextmanager
    async def made(slots: int = 2, access: Access | None = None, **options: Any) -> AsyncIterator[Desk]:
        async with AsyncExitStack() as running:
            backend = await running.enter_async_context(PacedBackend())
            router = await running.enter_async_context(running_router(natsd.url, **options))
            await running.enter_async_context(running_worker(natsd.url, backend.url, slots=slots))
            await dispatching(router)
            await with_workers(router, 1, MODEL)
            line = Line(create_app(router, access=access))
            url = await running.enter_async_context(serving(line, "127.0.0.1", 0, drain_s=1))  # type: ignore[arg-type]
            yield Desk(bus, backend, line, url)

    return made


@pytest.fixture
async def desk(make: Make) -> AsyncIterator[Desk]:
    async with make() as desk:
        yield desk


def text(chunks: list[Json], name: str = "content") -> str:
    return "".join(c["choices"][0]["delta"].get(name, "") for c in chunks if c.get("choices"))


WORDS = "".join(f"word{n} " for n in range(5))


async def test_an_answer_has_a_status_its_tokens_and_a_footer(desk: Desk) -> None:
    chunks = await desk.answer("think 2, say 5")
    whole = text(chunks)
    assert whole.startswith(WORDS) and f"→ {MODEL} @ bench" in whole and "7 tokens" in whole
    assert text(chunks, "reasoning_content") == "thought0 thought1 "
    assert pipe_module.clean(whole) == WORDS.strip()
    assert f"→ {MODEL} @ bench" in desk.statuses[0][0]
    assert [done for _, done in desk.statuses][-1] is True and len(set(desk.statuses)) == len(desk.statuses)
    assert chunks[-1]["usage"] == {"prompt_tokens": 8, "completion_tokens": 7, "total_tokens": 15}
    (task,) = await desk.log(TaskSubmitted)
    assert (task.client, task.session, task.message) == ("user-1", "chat-1", "message-1")


async def test_the_next_turn_has_a_clean_history_and_continue_goes_on_behind_the_footer(desk: Desk) -> None:
    first = text(await desk.answer("say 5"))
    again = text(await desk.answer("say 5", first))
    tale = "".join(f"{word} " for word in TALE)
    assert again.startswith(f"\n\n{tale}")
    await desk.answer("say 5", first + again, "and say 3")
    history = desk.backend.requests[-1].body["messages"]
    assert [message["content"] for message in history] == ["say 5", WORDS.strip() + tale.strip(), "and say 3"]


async def test_without_a_stream_it_is_one_completion(desk: Desk) -> None:
    whole = await desk.ask("think 1, say 5", stream=False, chat=None)
    (choice,) = whole["choices"]
    assert choice == {
        "index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": WORDS, "reasoning_content": "thought0 "},
    }  # fmt: skip
    assert whole["usage"]["total_tokens"] == 14 and whole["object"] == "chat.completion"


async def test_images_and_long_histories_pass_whole(desk: Desk) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    picture = {"role": "user", "content": [{"type": "text", "text": "What is it? say 2"}, image]}
    turns = [f"turn {n} " + "lorem ipsum " * 40 for n in range(300)]
    await desk.answer(*turns, picture)
    messages = desk.backend.requests[-1].body["messages"]
    assert [message["content"] for message in messages[:-1]] == turns
    assert messages[-1] == picture


async def test_open_webuis_own_tools_are_dropped_and_a_programs_are_not(desk: Desk) -> None:
    tools = {"tools": [{"type": "function", "function": {"name": "search", "parameters": {}}}]}
    assert text(await desk.answer("say 5", body=tools)).startswith(WORDS)
    assert "tools" not in desk.backend.requests[-1].body
    await desk.answer("say 5", body=tools, chat=None)
    assert desk.backend.requests[-1].body["tools"] == tools["tools"]
    desk.valves(TOOLS=True)
    await desk.answer("say 5", body=tools)
    assert desk.backend.requests[-1].body["tools"] == tools["tools"]


async def test_stop_closes_the_stream_at_the_backend_and_is_the_only_end(desk: Desk) -> None:
    chunks = await desk.ask("say 900, every 5 ms")
    reading = asyncio.create_task(_collect(chunks))
    await eventually(lambda: desk.backend.heard("say 900").said > 3)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    heard = desk.backend.heard("say 900")
    await asyncio.wait_for(heard.over.wait(), 10)
    assert heard.gone_at is not None and heard.said < 900
    assert [type(event) for event in await desk.log(Terminal)] == [TaskCancelled]
    assert desk.statuses[-1][1] is True


class OneToken(pipe_module.Router):  # type: ignore[misc]
    """A router that says one token when it is told to, and then nothing."""

    def __init__(self) -> None:
        super().__init__("http://nowhere", "")
        self.listening, self.go = asyncio.Event(), asyncio.Event()
        self.calls: list[str] = []

    async def call(self, method: str, path: str, body: Json | None = None, *, timeout_s: float = 60.0) -> Json:
        self.calls.append(f"{method} {path}")
        return {"task": "t1"}

    async def events(self, task: str) -> AsyncIterator[tuple[str, Json]]:
        self.listening.set()
        await self.go.wait()
        yield "token", {"attempt": 1, "text": "word"}
        await asyncio.Event().wait()


@pytest.mark.parametrize("steps", range(12))
async def test_a_stop_that_comes_with_a_token_is_never_lost(steps: int) -> None:
    """Cancelled so many turns of the loop after the token was sent: asyncio.wait_for loses that at one of them."""
    router = OneToken()
    answer = pipe_module.Answer(
        router, pipe_module.Pipe.Valves(), {"messages": []}, pipe_module.Status(None), "m", footer=False
    )
    reading = asyncio.create_task(_collect(answer.chunks()))
    await router.listening.wait()
    await asyncio.sleep(0)
    router.go.set()
    for _ in range(steps):
        await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait({reading}, timeout=5)
    assert reading.cancelled()
    assert router.calls == ["POST /route", "DELETE /task/t1"]


async def test_a_stop_before_the_router_has_answered_leaves_nothing_behind(desk: Desk) -> None:
    reading = asyncio.create_task(_collect(await desk.ask("say 900, every 50 ms")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await eventually(lambda: desk.backend.running == 0)
    submitted = await desk.log(TaskSubmitted)
    assert len(await desk.log(Terminal)) == len(submitted)


async def test_a_stream_that_breaks_is_opened_again_and_repeats_nothing(desk: Desk) -> None:
    desk.line.cut = 4
    chunks = await desk.answer("say 90, every 10 ms")
    assert text(chunks).startswith("".join(f"word{n} " for n in range(90)) + "\n\n---")
    assert desk.line.streams > 1


async def test_where_nothing_streams_it_asks_and_gives_the_whole(desk: Desk) -> None:
    desk.line.refuse = True
    assert text(await desk.answer("say 5, every 20 ms")).startswith(WORDS)


async def test_looks_without_end_are_given_up_with_their_numbers(desk: Desk) -> None:
    desk.line.refuse = True
    desk.valves(POLL_MAX_RETRIES=4)
    *_, last = await desk.answer("say 5, after 60 s")
    assert "busy: no end after 4 looks" in last["error"]["message"]
    heard = desk.backend.heard("after 60")
    await asyncio.wait_for(heard.over.wait(), 10)
    assert heard.gone_at is not None


async def test_a_failure_keeps_the_text_before_it(desk: Desk) -> None:
    chunks = await desk.answer("say 9, fail after 3")
    assert "word2" in text(chunks)
    assert "attempts" in chunks[-1]["error"]["message"]


async def test_places_and_a_full_queue_are_told(make: Make) -> None:
    async with make(slots=1, places=Places(total=100, client=1)) as desk:
        first = asyncio.create_task(_collect(await desk.ask("say 900, every 20 ms")))
        await eventually(lambda: desk.backend.running == 1)
        second = asyncio.create_task(_collect(await desk.ask("say 5")))
        await eventually(lambda: any("waiting at place 1" in words for words, _ in desk.statuses))
        (refused,) = await desk.answer("say 5")
        words = refused["error"]["message"]
        assert words.startswith("Headrace is busy: ") and "limit 1" in words and "waiting 1" in words
        for reading in (first, second):
            reading.cancel()
        await asyncio.wait([first, second])
        assert "Stopped" in [words for words, _ in desk.statuses]


async def test_users_are_told_apart_only_by_a_key_that_may_speak_for_them(make: Make) -> None:
    keys = {
        name: Key(sha256=hashlib.sha256(name.encode()).hexdigest(), may_speak_for_users=name == "speaks")
        for name in KEYS
    }
    async with make(access=Access(keys=keys)) as desk:
        for name in KEYS:
            desk.valves(API_KEY=name)
            await desk.answer("say 1")
        assert [task.client for task in await desk.log(TaskSubmitted)] == ["user-1", "alone"]
        desk.valves(API_KEY="unknown")
        (refused,) = await desk.answer("say 1")
        assert "key is not known" in refused["error"]["message"] and "API_KEY" in refused["error"]["message"]


async def test_no_router_is_told_in_words() -> None:
    function = pipe_module.Pipe()
    function.valves = function.Valves(ROUTER_URL="http://127.0.0.1:1")
    chunks = [c async for c in await function.pipe({"stream": True, "messages": [{"role": "user", "content": "hi"}]})]
    assert "cannot be reached at http://127.0.0.1:1" in chunks[-1]["error"]["message"]
    assert "ROUTER_URL" in (await function.pipe({"messages": []}))["error"]["message"]


async def test_side_tasks_cost_nothing_or_go_behind_everybody(desk: Desk) -> None:
    assert json.loads(await desk.ask("### Task: …", stream=False, __task__="tags_generation")) == {"tags": []}
    assert desk.backend.requests == []
    desk.valves(TASKS="small")
    title = await desk.ask(
        "### Task: say 3", stream=False, __task__="title_generation", __message_id__=None,
        __task_body__={"messages": [{"role": "user", "content": "Why is the sky blue?"}]},
    )  # fmt: skip
    assert json.loads(title) == {"title": "Why is the sky blue?"}  # what the model said is no JSON
    (task,) = await desk.log(TaskSubmitted)
    assert (task.urgency, task.session, task.message, task.wants.model) == ("background", None, None, MODEL)
    assert desk.backend.requests[-1].body["max_tokens"] == pipe_module.SIDE_TOKENS


async def test_a_rating_becomes_evidence_once_the_answer_has_ended(desk: Desk) -> None:
    reading = asyncio.create_task(_collect(await desk.ask("say 40, every 20 ms")))
    await eventually(lambda: desk.backend.running == 1)
    said = bridge_module.rating_of("user-1", {"rating": 1}, {"message_id": "message-1"})
    assert await bridge_module.send(desk.url, "", said)
    await reading
    (event,) = [event for event in await desk.log(QualityJudged) if event.source == "thumb"]
    assert (event.value, event.client, event.model) == (1.0, "user-1", MODEL)
    async with serving(create_app(MemoryRouter()), "127.0.0.1", 0) as other:
        assert not await bridge_module.send(other, "", said)  # another model's answer: nobody minds


async def _collect(chunks: AsyncIterator[Json]) -> list[Json]:
    return [chunk async for chunk in chunks]
