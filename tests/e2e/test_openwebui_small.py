"""TASKS=small with a real small model of one slot, in the real Open WebUI: what it says of titles, tags and follow-ups breaks
nothing, and the chat's own answer never waits for it. ``make e2e-openwebui``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from schemas.events import TaskCompleted, TaskStarted, TaskSubmitted, Terminal
from services.cli.openwebui import OpenWebUI as Installing
from services.cli.pipe import PIPE, install_into
from support.chat_browser import Chat, chromium, signed_in
from support.docker import Unavailable
from support.eventually import eventually
from support.history import Entry
from support.llama import MODEL, llama
from support.openwebui import OpenWebUI
from support.proving import Proof
from support.stand_in_fleet import stand_in_fleet

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

FOOTER = "🧭 Headrace:"
Json = dict[str, Any]
Site = tuple[OpenWebUI, Proof, Any]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("small")
    async with AsyncExitStack() as running:
        try:
            browser = await running.enter_async_context(chromium())
            server = await running.enter_async_context(llama(slots=1, context=4096))
            proof, _ = await running.enter_async_context(stand_in_fleet(folder, {"laptop": server.url}))
            webui = await running.enter_async_context(OpenWebUI(folder / "webui", f"{proof.stack.router_url}/v1"))
        except Unavailable as reason:
            pytest.skip(str(reason))
        async with Installing(webui.url, await webui.api_key()) as there:
            await install_into(there, {"ROUTER_URL": proof.stack.router_url})
        path = f"/api/v1/functions/id/{PIPE}/valves/update"
        (await webui.admin.post(path, json={"ROUTER_URL": proof.stack.router_url, "TASKS": "small"})).raise_for_status()
        token = webui.user.headers["authorization"].removeprefix("Bearer ")
        yield webui, proof, await running.enter_async_context(signed_in(browser, webui.url, token))


async def test_titles_tags_and_follow_ups_of_a_real_small_model_break_nothing_and_delay_no_chat(site: Site) -> None:
    webui, proof, window = site
    chat = await Chat.new(window, PIPE)
    log: list[Entry] = []
    turns = []
    for question, ended in (("Why is the sky blue? Be brief.", 3), ("And grass?", 0), ("And snow?", 5)):
        await chat.send(question)
        await chat.until_text(FOOTER)
        turns.append(chat.message)
        # The third one is asked while the second one's follow-ups are made: they have the only slot.
        log = await eventually(partial(beside, proof, ended), within_s=90, every_s=0.1)

    asked = [entry.event for entry in log if isinstance(entry.event, TaskSubmitted)]
    of_chat, others = [task for task in asked if task.message], [task for task in asked if not task.message]
    assert [(task.message, task.urgency) for task in of_chat] == [(message, "interactive") for message in turns]
    assert {(task.urgency, task.wants.model, task.session) for task in others} == {("background", MODEL, None)}
    for number, turn in enumerate(of_chat):
        asked_at, began, over = (at(log, kind, turn.task) for kind in (TaskSubmitted, TaskStarted, TaskCompleted))
        assert not [
            one for one in others if at(log, TaskStarted, one.task) < over and at(log, Terminal, one.task) > began
        ]
        print(f"\nturn {number} began {(began - asked_at) / 1e3:.0f} ms after it was asked")

    stored = (await webui.user.get(f"/api/v1/chats/{chat.id}")).json()
    assert stored["title"] not in ("", "New Chat") and len(stored["title"]) <= 81
    follow_ups = [message.get("followUps") or [] for message in stored["chat"]["history"]["messages"].values()]
    assert all(isinstance(words, str) for found in follow_ups for words in found)
    tags = [tag["name"] for tag in (await webui.user.get(f"/api/v1/chats/{chat.id}/tags")).json()]
    print(f"title {stored['title']!r}, tags {tags}, follow-ups {follow_ups}")
    for task in others:
        shown = await proof.task(task.task)
        print(shown["status"]["state"], (shown.get("answer") or {}).get("text"))
    assert [line for line in webui.log.read_text().splitlines() if "| ERROR" in line] == []


async def beside(proof: Proof, ended: int) -> list[Entry]:
    """The log, once so many side calls have ended and none is left; for 0 once one runs."""
    log = await proof.log()
    asked = {e.event.task for e in log if isinstance(e.event, TaskSubmitted) and not e.event.message}
    started = {e.event.task for e in log if isinstance(e.event, TaskStarted)} & asked
    over = {e.event.task for e in log if isinstance(e.event, Terminal)} & asked
    told = f"{len(asked)} side calls, of which {len(started)} began and {len(over)} ended"
    assert len(over) >= ended and asked == over if ended else started - over, told
    return log


def at(log: list[Entry], kind: Any, task: str) -> float:
    """When it was said first; in the far future where it was not."""
    times = [entry.at_us for entry in log if isinstance(entry.event, kind) and entry.event.task == task]
    return min(times, default=float("inf"))
