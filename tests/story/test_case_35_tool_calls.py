"""Case 35 (ollama#12557, #9092, new-api#7252): a tool call split across frames, buffered, or only in the last frame was lost.

What must hold instead: through both backends' APIs, streamed and whole, the client gets each call once and whole; with what else
the same fleet must show about who may be asked for tools and for titles.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from schemas.events import TaskRouted, TaskSubmitted
from support.backends import (
    DONE,
    Script,
    ollama_done,
    ollama_frame,
    openai_frame,
    openai_usage,
)
from support.proving import Proof
from support.standing import both

ARGUMENTS = '{"city":"Kyoto","days":3}'
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
ASK = {"max_tokens": 50, "messages": [{"role": "user", "content": "Will it rain?"}], "tools": TOOLS}


def function(name: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"name": name, "arguments": arguments}}


WEATHER, CLOCK = function("weather", {"city": "Kyoto", "days": 3}), function("clock", {})
OLLAMA = {
    "split": [ollama_frame(tool_calls=[WEATHER]), ollama_frame(tool_calls=[CLOCK]), ollama_done()],
    "buffered": [ollama_frame("I look."), ollama_frame(tool_calls=[WEATHER, CLOCK]), ollama_done()],
    "last": [
        ollama_frame("I look."),
        ollama_done(message={"role": "assistant", "content": "", "tool_calls": [WEATHER, CLOCK]}),
    ],
}
FIRST, SECOND = function("weather", ""), function("clock", "{}")
OPENAI = {
    "split": [
        openai_frame(tool_calls=[{"index": 0, "id": "a", "type": "function", **FIRST}]),
        openai_frame(tool_calls=[{"index": 0, "function": {"arguments": ARGUMENTS[:9]}}]),
        openai_frame(tool_calls=[{"index": 0, "function": {"arguments": ARGUMENTS[9:]}}]),
        openai_frame(tool_calls=[{"index": 1, "id": "b", "type": "function", **SECOND}]),
        openai_frame(finish_reason="tool_calls"),
    ],
    "split without an index": [
        openai_frame(tool_calls=[{"id": "a", **FIRST}]),
        openai_frame(tool_calls=[{"function": {"arguments": ARGUMENTS[:9]}}]),
        openai_frame(tool_calls=[{"function": {"arguments": ARGUMENTS[9:]}}]),
        openai_frame(tool_calls=[SECOND], finish_reason="tool_calls"),
    ],
    "buffered": [
        openai_frame("I look."),
        openai_frame(
            tool_calls=[{"index": 0, "id": "a", **function("weather", ARGUMENTS)}, {"index": 1, "id": "b", **SECOND}]
        ),
        openai_frame(finish_reason="tool_calls"),
    ],
    "last": [
        b"data: "
        + json.dumps(
            {
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "tool_calls",
                        "message": {"role": "assistant", "tool_calls": [function("weather", ARGUMENTS), SECOND]},
                    }
                ]
            }
        ).encode()
        + b"\n\n"
    ],
}
CASES = [("ollama", name, steps) for name, steps in OLLAMA.items()] + [
    ("vllm", name, [*steps, openai_usage(), DONE]) for name, steps in OPENAI.items()
]


async def streamed(proof: Proof, body: dict[str, Any]) -> tuple[list[tuple[str, str]], str]:
    """(name, arguments) of each call as a client joins them, and the finish reason."""
    calls: dict[int, list[str]] = {}
    reason = ""
    async with proof.http.stream("POST", "/v1/chat/completions", json=body | {"stream": True}) as reply:
        async for line in reply.aiter_lines():
            if not line.startswith("data: {"):
                continue
            for choice in json.loads(line[6:])["choices"]:
                reason = choice["finish_reason"] or reason
                for delta in choice["delta"].get("tool_calls") or ():
                    joined = calls.setdefault(delta["index"], ["", "", ""])
                    joined[0] += delta.get("id") or ""
                    joined[1] += delta["function"].get("name") or ""
                    joined[2] += delta["function"].get("arguments") or ""
    assert all(joined[0] for joined in calls.values()), "a call without an id cannot be answered"
    return [(joined[1], joined[2]) for _, joined in sorted(calls.items())], reason


async def through_ollamas(proof: Proof, model: str, *, stream: bool) -> tuple[list[tuple[str, Any]], str]:
    """The same through Ollama's API, whose calls are whole and have objects as arguments."""
    body = {"model": model, "messages": ASK["messages"], "tools": ASK["tools"], "stream": stream}
    lines = [json.loads(line) for line in (await proof.http.post("/api/chat", json=body)).content.splitlines()]
    calls = [call["function"] for line in lines for call in line["message"].get("tool_calls", ())]
    assert [call["index"] for call in calls] == list(range(len(calls)))
    return [(call["name"], call["arguments"]) for call in calls], lines[-1]["done_reason"]


def read(calls: list[tuple[str, str]]) -> list[tuple[str, Any]]:
    return [(name, json.loads(arguments)) for name, arguments in calls]


async def test_case_35_tool_calls_come_out_whole_in_every_shape_through_both_apis(tmp_path: Path) -> None:
    expected = [("weather", {"city": "Kyoto", "days": 3}), ("clock", {})]
    async with both(tmp_path) as (proof, stubs):
        for kind, shape, steps in CASES:
            stubs[kind].scripts = [Script(steps)] * 4
            body = ASK | {"headrace": {"worker": kind}, "model": "m:latest" if kind == "ollama" else "org/m"}
            calls, reason = await streamed(proof, body)
            assert (read(calls), reason) == (expected, "tool_calls"), f"{kind}, {shape}, streamed"
            whole = (await proof.http.post("/v1/chat/completions", json=body)).json()["choices"][0]
            told = [
                (call["function"]["name"], call["function"]["arguments"]) for call in whole["message"]["tool_calls"]
            ]
            assert (read(told), whole["finish_reason"]) == (expected, "tool_calls"), f"{kind}, {shape}, whole"
            assert len({call["id"] for call in whole["message"]["tool_calls"]}) == 2
            for stream in (True, False):
                assert await through_ollamas(proof, body["model"], stream=stream) == (expected, "stop"), (
                    f"{kind}, {shape}, Ollama's API, stream {stream}"
                )


async def test_tools_go_to_who_declares_them_and_images_are_refused_by_who_says_that_it_sees_none(
    tmp_path: Path,
) -> None:
    """The Ollama here declares tools and, by leaving it out, no vision; the vLLM declares nothing."""
    async with both(tmp_path) as (proof, stubs):
        for _ in range(3):
            answer = await proof.http.post("/v1/chat/completions", json=ASK)
            assert answer.json()["headrace"]["worker_name"] == "ollama", answer.text
        routed = [entry.event for entry in await proof.log() if isinstance(entry.event, TaskRouted)]
        reasons = {removal.reason for event in routed for removal in event.removed}
        assert reasons == {"undeclared: does not say whether it takes tools, others do"}
        picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}]
        look = {"messages": [{"role": "user", "content": picture}], "max_tokens": 5}
        refused = await proof.http.post("/v1/chat/completions", json=look | {"model": "m:latest"})
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["param"]) == (400, "unsupported", "messages")
        assert error["message"] == "m:latest takes no images; these can: org/m"
        seen = await proof.http.post("/v1/chat/completions", json=look)
        assert seen.json()["headrace"]["worker_name"] == "vllm"
        assert stubs["vllm"].chats()[-1]["messages"][0]["content"] == picture, "as it came"


@pytest.mark.parametrize("header", ["x-openwebui-task", "x-headrace-task-kind"])
async def test_case_40_a_chats_title_neither_goes_before_people_nor_moves_the_chat(tmp_path: Path, header: str) -> None:
    async with both(tmp_path) as (proof, _):
        headers = {header: "title_generation", "x-openwebui-chat-id": "c1", "x-openwebui-user-id": "u1"}
        body = {"messages": [{"role": "user", "content": "Give it a title"}], "max_tokens": 5}
        answer = await proof.http.post("/v1/chat/completions", json=body, headers=headers)
        assert answer.status_code == 200
        title = next(entry.event for entry in await proof.log() if isinstance(entry.event, TaskSubmitted))
        assert (title.urgency, title.session, title.client) == ("background", None, "u1")
