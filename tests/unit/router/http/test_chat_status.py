"""What Open WebUI shows above an answer: a line for each change, none for a repetition."""

from __future__ import annotations

from typing import Any

import msgspec

from services.router.http.chat_status import Statuses, is_open_webui
from services.router.port import TaskStatus
from support.router_port import MemoryRouter


def shown(line: bytes) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.json.decode(line.removeprefix(b"data: "))["event"]["data"]
    return data


def test_place_and_start_while_it_waits_then_who_answers() -> None:
    statuses = Statuses(MemoryRouter())
    waiting = TaskStatus(
        task="t", state="waiting", domain="code", model="qwen3", expected_worker="w-1", position=3, eta_s=4.2
    )
    first = shown(statuses.said(waiting))
    assert first == {"description": "code → qwen3 @ desktop · place 3 in the queue, starts in about 4 s", "done": False}
    assert statuses.said(waiting) == b""
    assert statuses.said(msgspec.structs.replace(waiting, waited_s=9.0)) == b"", "that time passed is no news"
    soon = msgspec.structs.replace(waiting, position=1, eta_s=0.1)
    assert shown(statuses.said(soon))["description"].endswith("place 1 in the queue, starts in less than 1 s")
    unknown = msgspec.structs.replace(waiting, position=2, eta_s=None)
    assert shown(statuses.said(unknown))["description"] == "code → qwen3 @ desktop · place 2 in the queue"
    running = TaskStatus(task="t", state="running", domain="code", model="qwen3", worker="w-2")
    assert shown(statuses.said(running)) == {"description": "code → qwen3 @ laptop", "done": True}


def test_it_is_known_by_its_headers() -> None:
    assert is_open_webui({"X-OpenWebUI-Chat-Id": "c"})
    assert not is_open_webui({"x-headrace-client": "me"})
