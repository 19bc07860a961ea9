"""The function for Open WebUI, as that loads it, against a real router and worker over a paced backend."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import pytest

from schemas.events import QualityJudged, TaskCancelled, TaskCompleted, TaskSubmitted, Terminal
from services.router.fullness import Places
from services.router.http.access import Access
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.runtime.settings import Key
from support.eventually import eventually
from support.function_desk import Desk, Make, collect, text
from support.functions import bridge_module, pipe_module
from support.paced_backend import MODEL, TALE
from support.router_port import MemoryRouter

Json = dict[str, Any]
KEYS = ("speaks", "alone")


WORDS = "".join(f"word{n} " for n in range(5))


async def test_an_answer_has_a_status_its_tokens_and_a_footer(desk: Desk) -> None:
    chunks = await desk.answer("think 2, say 5")
    whole = text(chunks)
    assert whole.startswith(WORDS) and f"→ {MODEL} @ bench" in whole and "7 tokens" in whole
    assert text(chunks, "reasoning_content") == "thought0 thought1 "
    assert pipe_module.clean(whole) == WORDS.strip()
    assert f"→ {MODEL} @ bench" in desk.statuses[0][0]
    assert all("assumed: never judged" in words for words in (desk.statuses[0][0], whole))
    assert desk.statuses[-1][1] is True
    assert all(one != other for one, other in pairwise(desk.statuses)), "nothing is said twice in a row"
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
    reading = asyncio.create_task(collect(chunks))
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
    reading = asyncio.create_task(collect(answer.chunks()))
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
    reading = asyncio.create_task(collect(await desk.ask("say 900, every 50 ms")))
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
        first = asyncio.create_task(collect(await desk.ask("say 900, every 20 ms")))
        await eventually(lambda: desk.backend.running == 1)
        second = asyncio.create_task(collect(await desk.ask("say 5")))
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


TITLE: Json = {
    "stream": False, "__task__": "title_generation", "__message_id__": None,
    "__task_body__": {"messages": [{"role": "user", "content": "Why is the sky blue?"}]},
}  # fmt: skip


async def test_side_tasks_cost_nothing_or_go_behind_everybody(desk: Desk) -> None:
    assert json.loads(await desk.ask("### Task: …", stream=False, __task__="tags_generation")) == {"tags": []}
    assert desk.backend.requests == []
    desk.valves(TASKS="small")
    footer = pipe_module.FOOTER.format("general → mill @ bench")
    title = await desk.ask(f"### Task: ASSISTANT: Blue.{footer}\nUSER: say 3", **TITLE)
    assert json.loads(title) == {"title": "Why is the sky blue?"}  # what the model said is no JSON
    (task,) = await desk.log(TaskSubmitted)
    assert (task.urgency, task.session, task.message, task.wants.model) == ("background", None, None, MODEL)
    asked = desk.backend.requests[-1].body
    assert asked["messages"][0]["content"].split() == ["###", "Task:", "ASSISTANT:", "Blue.", "USER:", "say", "3"]
    assert asked["max_tokens"] == pipe_module.SIDE_TOKENS
    assert asked["response_format"] == pipe_module.side_form("title_generation")
    assert asked["chat_template_kwargs"] == {"enable_thinking": False}


async def test_what_an_answer_waits_for_is_never_put_behind_everybody(desk: Desk) -> None:
    desk.valves(TASKS="small")
    searched = {"messages": [{"role": "user", "content": "Why is the sky blue?"}]}
    queries = await desk.ask("### Task: …", stream=False, __task__="query_generation", __task_body__=searched)
    assert json.loads(queries) == {"queries": ["Why is the sky blue?"]}
    assert desk.backend.requests == []


async def test_a_title_that_is_asked_for_first_waits_for_the_answer_of_its_chat(desk: Desk) -> None:
    """Open WebUI asks for it a moment before it asks the chat's own question; there is a slot for both."""
    desk.valves(TASKS="small")
    titled = asyncio.create_task(desk.ask("### Task: say 3", **TITLE))
    await asyncio.sleep(0)
    assert "word59" in text(await desk.answer("say 60, every 30 ms"))
    await titled
    chat, title = desk.backend.requests
    assert (chat.prompt, title.prompt) == ("say 60, every 30 ms", "### Task: say 3")
    assert chat.ended_at is not None and title.began_at > chat.ended_at
    assert not pipe_module._answering


async def test_the_next_question_of_a_chat_takes_the_place_of_what_is_made_beside_it(make: Make) -> None:
    async with make(slots=1) as desk:
        desk.valves(TASKS="small")
        beside = asyncio.create_task(desk.ask("### Task: after 60 s", **TITLE | {"__task__": "tags_generation"}))
        await eventually(lambda: desk.backend.running == 1)
        assert "word4" in text(await desk.answer("say 5"))
        assert json.loads(await beside) == {"tags": []}
        tags, chat = desk.backend.requests
        assert tags.gone_at is not None and tags.gone_at <= chat.began_at
        assert [type(event) for event in await desk.log(Terminal)] == [TaskCancelled, TaskCompleted]
        assert not pipe_module._beside


async def test_a_rating_becomes_evidence_once_the_answer_has_ended(desk: Desk) -> None:
    reading = asyncio.create_task(collect(await desk.ask("say 40, every 20 ms")))
    await eventually(lambda: desk.backend.running == 1)
    said = bridge_module.rating_of("user-1", {"rating": 1}, {"message_id": "message-1"})
    assert await bridge_module.send(desk.url, "", said)
    await reading
    (event,) = [event for event in await desk.log(QualityJudged) if event.source == "thumb"]
    assert (event.value, event.client, event.model) == (1.0, "user-1", MODEL)
    async with serving(create_app(MemoryRouter()), "127.0.0.1", 0) as other:
        assert not await bridge_module.send(other, "", said)  # another model's answer: nobody minds
