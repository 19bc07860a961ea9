"""The real Open WebUI in headless Chromium, through ``headrace pipe`` and through /v1. ``make e2e-openwebui``.

A whole Headrace of real processes stands behind it, over a machine with four slots whose answers are paced by their prompts.
"""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from schemas.events import QualityJudged, TaskCancelled, TaskSubmitted, Terminal
from services.cli.pipe import PIPE
from support.chat_browser import Chat, chromium, signed_in
from support.docker import Unavailable
from support.eventually import eventually
from support.openwebui import OpenWebUI
from support.paced_backend import MODEL, PacedBackend
from support.proving import Proof
from support.source import ROOT
from support.stand_in_fleet import stand_in_fleet

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

SLOTS = 4
LEFT_AT_LEAST = 500
"""Tokens that a stopped answer still had before it."""
FOOTER = "🧭 Headrace:"
ROUTES = f'[night]\ntargets = [{{model = "{MODEL}"}}]\n'
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
IMAGES = ROOT / "docs" / "images"
Json = dict[str, Any]


@dataclass
class Site:
    """Everything that runs."""

    webui: OpenWebUI
    proof: Proof
    backend: PacedBackend
    browser: Any
    key: str
    pictures: Path
    """docs/images with HEADRACE_PICTURES=1 alone: a picture differs a little each time."""

    async def installed(self, *options: str) -> str:
        """What ``headrace pipe --install`` says."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "services.cli", "pipe", "--install", self.webui.url),
            *("--router", self.proof.stack.router_url, *options),
            cwd=ROOT, env={**os.environ, "OPENWEBUI_KEY": self.key}, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said, _ = await process.communicate()
        assert process.returncode == 0, said
        return said.decode()

    async def seen_by_the_user(self) -> set[str]:
        """The models that somebody who is no administrator may choose."""
        assert (await self.webui.user.get("/api/v1/auths/")).json()["role"] == "user"
        return {row["id"] for row in (await self.webui.user.get("/api/models?refresh=true")).json()["data"]}

    async def valves(self, **changed: Any) -> None:
        path = f"/api/v1/functions/id/{PIPE}/valves"
        before = (await self.webui.admin.get(path)).json() or {}
        (await self.webui.admin.post(f"{path}/update", json=before | changed)).raise_for_status()

    async def submitted(self, message: str) -> TaskSubmitted:
        """The task of a chat's answer, from the log."""

        async def look() -> TaskSubmitted | None:
            events = [entry.event for entry in await self.proof.log()]
            return next((e for e in events if isinstance(e, TaskSubmitted) and e.message == message), None)

        found = await eventually(look, every_s=0.2)
        assert found is not None
        return found

    async def ends(self, task: str) -> list[Any]:
        """Its terminal facts, with the times (``time.time``) at which they were said."""

        async def look() -> list[Any]:
            return [
                (e.event, e.event.at)
                for e in await self.proof.log()
                if isinstance(e.event, Terminal) and e.event.task == task
            ]

        return list(await eventually(look, every_s=0.1))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("openwebui")
    async with AsyncExitStack() as running:
        try:
            browser = await running.enter_async_context(chromium())
            backend = await running.enter_async_context(PacedBackend())
            fleet = stand_in_fleet(folder, {"desktop": backend.url}, slots=SLOTS, routes=ROUTES)
            proof, _ = await running.enter_async_context(fleet)
            webui = await running.enter_async_context(OpenWebUI(folder / "webui", f"{proof.stack.router_url}/v1"))
        except Unavailable as reason:
            pytest.skip(str(reason))
        pictures = IMAGES if os.environ.get("HEADRACE_PICTURES") else folder
        site = Site(webui, proof, backend, browser, await webui.api_key(), pictures)
        assert await site.seen_by_the_user() == set()
        first, second = await site.installed(), await site.installed()
        assert "created the function headrace" in first
        assert "nothing to do" in second
        assert await site.seen_by_the_user() == {PIPE}
        yield site


@pytest_asyncio.fixture(loop_scope="module")
async def window(site: Site) -> AsyncIterator[Any]:
    """The user's browser, who is no administrator. Afterwards the machine is idle again."""
    token = site.webui.user.headers["authorization"].removeprefix("Bearer ")
    async with signed_in(site.browser, site.webui.url, token) as context:
        yield context
    for task in (await site.proof.http.get("/queue")).json()["tasks"]:
        await site.proof.http.delete(f"/task/{task['task']}")
    await site.proof.quiet()
    site.backend.requests.clear()
    site.backend.most = 0


async def test_a_user_sees_status_tokens_and_footer_and_the_next_turn_has_a_clean_history(
    site: Site, window: Any
) -> None:
    before = len(await site.proof.log())
    chat = await Chat.new(window, PIPE)
    assert "Headrace (Auto Route)" in await chat.page.locator("#model-selector-model-button").inner_text()
    await chat.send("Please say 60 words, every 50 ms, after 1 s")
    await chat.until_text("word5")
    partial = await chat.text()
    assert "word59" not in partial
    assert f"→ {MODEL} @ desktop" in await chat.status()
    whole = await chat.until_text(FOOTER)
    assert "word59" in whole and "60 tokens" in whole
    await chat.send("And now say 3 words")
    await chat.until_text(FOOTER)

    # The title, the tags and the follow-ups of both turns cost no place: the backend and the log know the two turns alone.
    stored = await eventually(lambda: _with_title(site, chat), within_s=30) or {}
    assert stored["title"].startswith("Please say 60 words")
    assert [heard.prompt for heard in site.backend.requests] == [
        "Please say 60 words, every 50 ms, after 1 s",
        "And now say 3 words",
    ]
    history = site.backend.requests[-1].body["messages"]
    assert [message["role"] for message in history] == ["user", "assistant", "user"]
    assert history[1]["content"].split() == [f"word{n}" for n in range(60)]
    assert "tools" not in site.backend.requests[-1].body
    tasks = [e.event for e in (await site.proof.log())[before:] if isinstance(e.event, TaskSubmitted)]
    assert [(task.session, task.client) for task in tasks] == [(chat.id, tasks[0].client)] * 2
    assert tasks[0].client not in ("local", "")


async def test_the_picture_of_the_readme(site: Site, window: Any) -> None:
    chat = await Chat.new(window, PIPE)
    await chat.send("What is a headrace good for?")
    whole = await chat.until_text(FOOTER)
    assert "spillway" in whole
    await chat.page.mouse.move(0, 0)
    await chat.picture(site.pictures / "openwebui.png")


async def _with_title(site: Site, chat: Chat) -> Json | None:
    stored = (await site.webui.user.get(f"/api/v1/chats/{chat.id}")).json()
    return stored if stored["title"] != "New Chat" else None


async def test_continue_and_regenerate_leave_no_footer_in_the_history(site: Site, window: Any) -> None:
    chat = await Chat.new(window, PIPE)
    await chat.send("Please say 4 words")
    await chat.until_text(FOOTER)
    await chat.answer.hover()
    await chat.page.locator("#continue-response-button").click()
    await eventually(lambda: len(site.backend.requests) == 2)
    assert [message["content"].strip() for message in site.backend.requests[-1].body["messages"]] == [
        "Please say 4 words", "word0 word1 word2 word3",
    ]  # fmt: skip
    text = await eventually(lambda: _continued(chat), within_s=30, every_s=0.2) or ""
    assert text.splitlines()[0].startswith("word0 word1") and "spillway" in text
    await chat.page.locator('button[aria-label="Regenerate"]').last.click()
    await chat.page.get_by_text("Try Again", exact=True).click()
    again = await eventually(lambda: len(site.backend.requests) == 3 and site.backend.requests[-1])
    assert [message["role"] for message in again.body["messages"]] == ["user"]


async def _continued(chat: Chat) -> str | None:
    text = await chat.text()
    return text if text.count(FOOTER) == 2 else None


async def test_an_image_reaches_the_model_whole(site: Site, window: Any) -> None:
    chat = await Chat.new(window, PIPE)
    picker = chat.page.locator('input[type="file"]:not(#camera-input)').first
    await picker.set_input_files({"name": "dot.png", "mimeType": "image/png", "buffer": PNG})
    await chat.page.locator('img[alt=""], img[src^="data:image"]').first.wait_for(state="attached")
    await chat.send("What is this? say 3 words")
    await chat.until_text(FOOTER)
    (content,) = [message["content"] for message in site.backend.requests[-1].body["messages"]]
    (image,) = [part["image_url"]["url"] for part in content if part["type"] == "image_url"]
    assert image.startswith("data:image/")


async def test_an_answer_that_fails_keeps_its_text_and_says_why_after_a_reload_too(site: Site, window: Any) -> None:
    chat = await Chat.new(window, PIPE)
    await chat.send("Please say 9 words, fail after 3")

    async def failed() -> Json | None:
        message = await site.webui.message(chat.id, chat.message)
        return message if message.get("error") else None

    stored = await eventually(failed, within_s=60, every_s=0.2) or {}
    why = stored["error"]["content"]["message"]
    assert "attempts" in why and "word2" in stored["content"]
    await chat.page.reload()
    await chat.until_text("word2")
    await chat.answer.get_by_text(why).wait_for()


async def test_each_route_is_a_model_where_the_valve_says_so(site: Site, window: Any) -> None:
    await site.valves(VIRTUAL_MODELS=True)
    try:
        assert "let everybody use" in await site.installed()
        shown = {row["id"]: row["name"] for row in (await site.webui.user.get("/api/models")).json()["data"]}
        assert shown["headrace.auto"] == "🧭 Headrace (Auto Route)"
        assert shown["headrace.night"] == "🧭 Headrace (night)"
        body = {"model": "headrace.night", "messages": [{"role": "user", "content": "say 3"}]}
        answer = (await site.webui.user.post("/api/chat/completions", json=body)).json()
        assert answer["choices"][0]["message"]["content"].split() == ["word0", "word1", "word2"]
        task = [e.event for e in await site.proof.log() if isinstance(e.event, TaskSubmitted)][-1]
        assert task.wants.route == "night"
    finally:
        await site.valves(VIRTUAL_MODELS=False)
        await site.installed()


async def test_case_41_stop_while_tokens_come_frees_the_slot(site: Site, window: Any) -> None:
    chat = await Chat.new(window, PIPE)
    await chat.send("Please say 900 words, every 20 ms")
    await chat.until_text("word3")
    clicked = await chat.stop()
    heard = site.backend.heard("say 900")
    await asyncio.wait_for(heard.over.wait(), 10)
    assert heard.gone_at is not None and heard.said <= 900 - LEFT_AT_LEAST
    _told("streaming", clicked, heard.gone_at + _offset())
    await _cancelled_alone(site, chat)
    message = await site.webui.message(chat.id, chat.message)
    assert "word3" in message["content"]


async def test_case_41_stop_in_prefill_frees_the_slot(site: Site, window: Any) -> None:
    chat = await Chat.new(window, PIPE)
    await chat.send("Please say 600 words, after 60 s")
    await chat.until_status("@ desktop")
    await eventually(lambda: site.backend.heard("say 600"))
    clicked = await chat.stop()
    heard = site.backend.heard("say 600")
    await asyncio.wait_for(heard.over.wait(), 10)
    assert heard.gone_at is not None and heard.said == 0
    _told("in prefill", clicked, heard.gone_at + _offset())
    await _cancelled_alone(site, chat)


async def test_case_41_stop_while_queued_never_reaches_the_backend(site: Site, window: Any) -> None:
    for _ in range(SLOTS):
        await site.proof.submit("Please say 900 words, every 50 ms", max_tokens=900, model=MODEL)
    await eventually(lambda: site.backend.running == SLOTS)
    chat = await Chat.new(window, PIPE)
    await chat.send("Please say 7 words")
    assert "waiting at place 1" in await chat.until_status("waiting at place")
    await chat.picture(site.pictures / "openwebui-waiting.png")
    clicked = await chat.stop()
    _, at = await _cancelled_alone(site, chat)
    _told("queued", clicked, at)
    assert not [heard for heard in site.backend.requests if "say 7" in heard.prompt]
    assert "Stopped" in await chat.until_status("Stopped")


async def _cancelled_alone(site: Site, chat: Chat) -> tuple[TaskCancelled, float]:
    """The only terminal fact of the chat's answer; the stored message is done."""
    task = await site.submitted(chat.message)
    ((end, at),) = await site.ends(task.task)
    assert isinstance(end, TaskCancelled)
    await eventually(lambda: _is_done(site, chat), within_s=15)
    await site.proof.until(task.task, "cancelled")
    assert len(await site.ends(task.task)) == 1
    return end, at


async def _is_done(site: Site, chat: Chat) -> bool:
    return bool((await site.webui.message(chat.id, chat.message)).get("done"))


def _offset() -> float:
    """From the event loop's time to the calendar's."""
    return time.time() - asyncio.get_running_loop().time()


def _told(when: str, clicked: float, freed: float) -> None:
    print(f"\nStop while {when}: the slot was free {(freed - clicked) * 1e3:.0f} ms after the click")


async def test_a_thumb_becomes_a_fact_about_model_domain_and_worker(site: Site, window: Any) -> None:
    chat = await Chat.new(window, PIPE)
    await chat.send("Please fix this Python function: say 5 words")
    await chat.until_text(FOOTER)
    await chat.rate(good=True)
    task = await site.submitted(chat.message)

    async def judged() -> QualityJudged | None:
        events = [entry.event for entry in await site.proof.log()]
        return next(
            (e for e in events if isinstance(e, QualityJudged) and task.task in e.tasks and e.source == "thumb"), None
        )

    event = await eventually(judged, within_s=20, every_s=0.2)
    assert event is not None
    workers = await site.proof.workers()
    assert (event.model, event.worker, event.domain, event.value) == (
        MODEL,
        workers["desktop"]["id"],
        task.domain.label,
        1.0,
    )
    assert event.client == task.client


async def test_case_38_two_chats_stream_at_the_same_time(site: Site, window: Any) -> None:
    first, second = await Chat.new(window, PIPE), await Chat.new(window, PIPE)
    await first.send("Please say 300 words, every 50 ms")
    await first.until_text("word3")
    await second.page.bring_to_front()
    await second.send("Please say 301 words, every 50 ms")
    await second.until_text("word3")
    assert "word299" not in await first.text()
    assert site.backend.running == 2
    assert (await site.webui.http.get("/health")).status_code == 200


async def test_case_39_four_at_once_through_the_function(site: Site, window: Any) -> None:
    async def ask(number: int) -> str:
        body = {
            "model": PIPE,
            "stream": True,
            "messages": [{"role": "user", "content": f"Chat {number}: say 40, every 50 ms"}],
        }
        async with site.webui.user.stream("POST", "/api/chat/completions", json=body) as reply:
            return (await reply.aread()).decode()

    answers = await asyncio.gather(*map(ask, range(4)))
    assert site.backend.most == 4
    assert all("word39" in answer and FOOTER not in answer for answer in answers)


TITLE = '### Task:\nGenerate a title as {"title": "..."}\n<chat_history>\nUSER: Why is the sky blue?\n</chat_history>'


async def test_case_40_side_tasks_cost_no_place_or_go_behind_everybody(site: Site, window: Any) -> None:
    chat = await Chat.new(window, PIPE)
    await chat.send("Please say 4 words")
    await chat.until_text(FOOTER)
    await eventually(lambda: _with_title(site, chat), within_s=30)
    assert len(site.backend.requests) == 1
    await site.valves(TASKS="small")
    try:
        body = {"model": PIPE, "chat_id": chat.id, "messages": [{"role": "user", "content": "say 4"}]}
        answer = await site.webui.user.post("/api/v1/tasks/title/completions", json=body)
        assert answer.status_code == 200, answer.text
        asked = site.backend.requests[-1]
        assert asked.prompt.startswith("### Task:") and asked.body["max_tokens"] <= 200
        task = [e.event for e in await site.proof.log() if isinstance(e.event, TaskSubmitted)][-1]
        assert (task.urgency, task.session, task.wants.model) == ("background", None, MODEL)
    finally:
        await site.valves(TASKS="local")


async def test_case_42_an_answer_survives_the_closed_browser(site: Site, window: Any) -> None:
    chat = await Chat.new(window, PIPE)
    await chat.send("Please say 100 words, every 50 ms")
    await chat.until_text("word3")
    await chat.page.close()
    heard = site.backend.heard("say 100")
    await asyncio.wait_for(heard.over.wait(), 60)
    assert heard.ended_at is not None
    await eventually(lambda: _is_done(site, chat), within_s=30)
    task = await site.submitted(chat.message)
    answer = (await site.proof.task(task.task))["answer"]
    assert answer["text"].split()[-1] == "word99"
    again = await window.new_page()
    await again.goto(f"/c/{chat.id}")
    await again.locator("#response-content-container").filter(has_text=FOOTER).wait_for()


async def test_the_plain_openai_connection_shows_who_answers(site: Site, window: Any) -> None:
    """Without the function: /v1 as Open WebUI's own connection, with a grant for everybody."""
    entry = {
        "id": MODEL, "base_model_id": None, "name": MODEL, "params": {}, "is_active": True,
        "meta": {"capabilities": {"builtin_tools": False}},
        "access_grants": [{"principal_type": "user", "principal_id": "*", "permission": "read"}],
    }  # fmt: skip
    (await site.webui.admin.get("/api/models?refresh=true")).raise_for_status()
    (await site.webui.admin.post("/api/v1/models/create", json=entry)).raise_for_status()
    chat = await Chat.new(window, MODEL)
    await chat.send("Please say 500 words, every 50 ms")
    await chat.until_text("word3")
    assert f"{MODEL} @ desktop" in await chat.until_status("desktop")
    clicked = await chat.stop()
    heard = site.backend.heard("say 500")
    await asyncio.wait_for(heard.over.wait(), 15)
    assert heard.gone_at is not None
    _told("streaming over /v1", clicked, heard.gone_at + _offset())
