"""Anthropic's Messages, as docs/http/anthropic.md promises them and as Anthropic's own client sees them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import anthropic
import httpx
import pytest

from services.router.http.anthropic_reply import MessageEvents
from services.router.http.anthropic_request import messages_task
from services.router.http.live import Line, Timing
from services.router.http.streaming import Streamed
from services.router.port import Busy, TokenUpdate
from support.eventually import PATIENCE_S
from support.playing import ARGUMENTS, breaks, calls, is_cut, thinks
from support.router_port import MemoryRouter

HI: Any = [{"role": "user", "content": "Hi"}]
TOOL: Any = {"name": "weather", "description": "d", "input_schema": {"type": "object", "properties": {}}}


@pytest.fixture
async def client(url: str) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=url, api_key="secret", max_retries=0, timeout=PATIENCE_S) as client:
        yield client


async def test_a_whole_message(client: anthropic.AsyncAnthropic, router: MemoryRouter) -> None:
    message = await client.messages.create(model="qwen3", max_tokens=9, messages=HI, system="Be brief")
    assert [block.type for block in message.content] == ["text"]
    assert message.content[0].type == "text" and message.content[0].text == "Hello world"
    assert (message.stop_reason, message.model, message.role) == ("end_turn", "qwen3", "assistant")
    usage = message.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (8, 4, 3)
    asked = router.last.asked
    assert asked.body.messages == ({"role": "system", "content": "Be brief"}, *HI)
    assert (asked.options.max_tokens, asked.wants.model, asked.client) == (9, "qwen3", "key-2bb80d537b1d")


async def test_a_stream_has_the_events_in_their_order(http: httpx.AsyncClient) -> None:
    body = {"model": "auto", "max_tokens": 9, "messages": HI, "stream": True}
    reply = await http.post("/v1/messages", json=body)
    names = [line.removeprefix("event: ") for line in reply.text.splitlines() if line.startswith("event: ")]
    assert names == [
        "message_start",
        "ping",
        "content_block_start",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


async def test_thinking_comes_first_in_a_block_of_its_own(
    client: anthropic.AsyncAnthropic, router: MemoryRouter
) -> None:
    router.script = thinks
    asks: dict[str, Any] = {"model": "qwen3", "max_tokens": 99, "messages": HI}
    whole = await client.messages.create(**asks, thinking={"type": "enabled", "budget_tokens": 1024})
    assert router.last.asked.body.extra == {"think": True}
    async with client.messages.stream(**asks) as stream:
        streamed = await stream.get_final_message()
    for message in (whole, streamed):
        assert [block.type for block in message.content] == ["thinking", "text"]
        assert message.content[0].type == "thinking" and message.content[0].thinking == "Let me see."
        assert message.content[1].type == "text" and message.content[1].text == "It is 4."


@pytest.mark.parametrize("shape", ["split", "buffered", "only at the end"])
async def test_case_35_tool_calls_come_out_whole(
    client: anthropic.AsyncAnthropic, router: MemoryRouter, shape: str
) -> None:
    router.script = calls(shape, "I look.")
    asks: dict[str, Any] = {"model": "qwen3", "max_tokens": 99, "messages": HI, "tools": [TOOL]}
    whole = await client.messages.create(**asks, tool_choice={"type": "any"})
    assert router.last.asked.body.extra["tool_choice"] == "required"
    async with client.messages.stream(**asks) as stream:
        streamed = await stream.get_final_message()
    for message in (whole, streamed):
        assert message.stop_reason == "tool_use"
        assert [block.type for block in message.content] == ["text", "tool_use", "tool_use"]
        used = [block for block in message.content if block.type == "tool_use"]
        assert [(use.id, use.name, use.input) for use in used] == [
            ("c1", "weather", {"city": "Kyoto", "days": 3}),
            ("c2", "clock", {}),
        ]


async def test_claude_codes_changing_first_line_keeps_nobody_from_a_cache(
    client: anthropic.AsyncAnthropic, router: MemoryRouter
) -> None:
    line = "x-anthropic-billing-header: cc_version=2.1.37; cc_entrypoint=cli; cch={};"
    hi: Any = [{"role": "user", "content": "Hi"}]
    for system in (
        [{"type": "text", "text": line.format("a1")}, {"type": "text", "text": "You are kind."}],
        f"{line.format('b2')}\nYou are kind.",
        "You are kind.",
    ):
        told: Any = system
        await client.messages.create(model="qwen3", max_tokens=9, messages=hi, system=told)
        assert router.last.asked.body.messages[0] == {"role": "system", "content": "You are kind."}
    await client.messages.create(model="qwen3", max_tokens=9, messages=hi, system=line.format("c3"))
    assert [message["role"] for message in router.last.asked.body.messages] == ["user"]


async def test_a_conversation_with_tools_and_images_becomes_chat_messages(
    client: anthropic.AsyncAnthropic, router: MemoryRouter
) -> None:
    image: Any = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    messages: Any = [
        {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": ""},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Kyoto", "days": 3}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "is_error": True,
                    "content": [{"type": "text", "text": "no"}],
                },
                {"type": "text", "text": "And now?"},
            ],
        },
    ]
    await client.messages.create(
        model="qwen3", max_tokens=9, messages=messages, tools=[TOOL], stop_sequences=["END"],
        metadata={"user_id": "user_1_account__session_abc"}, extra_body={"min_p": 0.1, "top_k": 4},
    )  # fmt: skip
    asked = router.last.asked
    assert asked.body.messages == (
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ],
        },
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_content": "Hm.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "Error: no"},
        {"role": "user", "content": "And now?"},
    )
    assert asked.body.extra == {
        "tools": [
            {
                "type": "function",
                "function": {"name": "weather", "parameters": TOOL["input_schema"], "description": "d"},
            }
        ],
        "stop": ["END"],
        "top_k": 4,
        "min_p": 0.1,
    }
    assert asked.session == "abc"


async def test_an_answer_that_was_cut_off(client: anthropic.AsyncAnthropic, router: MemoryRouter) -> None:
    router.script = is_cut
    message = await client.messages.create(model="qwen3", max_tokens=2, messages=HI)
    assert message.stop_reason == "max_tokens"


async def test_a_stream_that_breaks_ends_in_an_error_event(
    client: anthropic.AsyncAnthropic, router: MemoryRouter
) -> None:
    router.script = breaks
    with pytest.raises(anthropic.APIStatusError, match="desktop went away"):
        async with client.messages.stream(model="qwen3", max_tokens=9, messages=HI) as stream:
            await stream.get_final_message()


async def test_errors_are_in_anthropics_form(
    client: anthropic.AsyncAnthropic, http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    with pytest.raises(anthropic.NotFoundError, match="nearest: qwen3"):
        await client.messages.create(model="qwen33", max_tokens=9, messages=HI)
    router.refusal = Busy("the queue is full", retry_after_s=3)
    with pytest.raises(anthropic.RateLimitError, match="the queue is full"):
        await client.messages.create(model="qwen3", max_tokens=9, messages=HI)
    for reply, status, kind in (
        (await http.post("/v1/messages", json={"model": "qwen3"}), 400, "invalid_request_error"),
        (await http.post("/v1/messages", content=b"x"), 400, "invalid_request_error"),
        (await http.get("/v1/messages"), 405, "invalid_request_error"),
        (await http.post("/v1/messages/nowhere"), 404, "not_found_error"),
        (
            await http.post("/v1/messages", headers={"content-length": "99999999"}, content=b"x"),
            413,
            "request_too_large",
        ),
    ):
        assert (reply.status_code, reply.json()["type"], reply.json()["error"]["type"]) == (status, "error", kind)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text"),
        ({"messages": [{"role": "user", "content": [{"type": "document", "source": {"type": "base64"}}]}]}, "document"),
        ({"messages": HI, "tools": [7]}, "tools[0]"),
    ],
)
async def test_a_bad_request_is_told_where(http: httpx.AsyncClient, body: dict[str, Any], field: str) -> None:
    reply = await http.post("/v1/messages", json={"model": "qwen3", "max_tokens": 9, **body})
    assert reply.status_code == 400
    assert field in reply.json()["error"]["message"]


async def test_tokens_are_estimated_before_anybody_answers(
    client: anthropic.AsyncAnthropic, router: MemoryRouter
) -> None:
    less = await client.messages.count_tokens(model="qwen3", messages=HI)
    more = await client.messages.count_tokens(model="qwen3", messages=HI, tools=[TOOL], system="Be brief")
    assert 0 < less.input_tokens < more.input_tokens
    assert not router.plays


async def test_models_are_listed_in_its_form_too(client: anthropic.AsyncAnthropic) -> None:
    assert [model.id async for model in client.models.list()] == ["auto", "qwen3", "smollm2:135m"]
    assert (await client.models.retrieve("smollm2:135m")).display_name == "smollm2:135m"


async def test_a_models_row_is_what_the_client_takes_it_for(client: anthropic.AsyncAnthropic) -> None:
    """Its client reads ``capabilities`` as an object, and warns where it is something else."""
    model = await client.models.retrieve("qwen3")
    assert (model.max_input_tokens, model.max_tokens, model.capabilities, model.lifecycle) == (
        40960,
        None,
        None,
        "active",
    )
    model.to_json()


@pytest.mark.parametrize(
    ("thinking", "said"),
    [
        (None, {"reasoning_effort": "low"}),
        ({"type": "adaptive"}, {"reasoning_effort": "low"}),
        ({"type": "enabled", "budget_tokens": 1024}, {"think": True}),
        ({"type": "disabled"}, {"think": False}),
    ],
)
async def test_the_effort_is_the_models_where_thinking_is_left_to_it(
    http: httpx.AsyncClient, router: MemoryRouter, thinking: dict[str, Any] | None, said: dict[str, Any]
) -> None:
    asks = {"model": "qwen3", "messages": HI, "thinking": thinking, "output_config": {"effort": "low"}}
    assert (await http.post("/v1/messages", json=asks)).status_code == 200
    assert router.last.asked.body.extra == said


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "document", "title": "Notes", "context": "Of May", "source": {"type": "text", "data": "It rained."}},
         "Notes\nOf May\nIt rained."),
        ({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "It rained."}]}}, "It rained."),
        ({"type": "document", "source": {"type": "content", "content": "It rained."}}, "It rained."),
        ({"type": "search_result", "title": "Rain", "source": "https://a.example",
          "content": [{"type": "text", "text": "It rained."}]},
         "Rain\nhttps://a.example\nIt rained."),
    ],
)  # fmt: skip
async def test_a_document_is_read_with_its_title(
    http: httpx.AsyncClient, router: MemoryRouter, block: dict[str, Any], text: str
) -> None:
    asks = {"model": "qwen3", "messages": [{"role": "user", "content": [block]}]}
    assert (await http.post("/v1/messages", json=asks)).status_code == 200
    assert router.last.asked.body.messages == ({"role": "user", "content": text},)


async def test_a_tool_that_was_found_is_named(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    use = {"type": "tool_use", "id": "t1", "name": "search", "input": {}}
    result = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": [{"type": "tool_reference", "tool_name": "weather"}],
    }
    asks = {
        "model": "qwen3",
        "messages": [*HI, {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}],
    }
    assert (await http.post("/v1/messages", json=asks)).status_code == 200
    assert router.last.asked.body.messages[-1] == {"role": "tool", "tool_call_id": "t1", "content": "weather"}


async def test_nothing_comes_before_the_beginning_however_slow_the_line(router: MemoryRouter) -> None:
    """The hold ends while the first token arrives: both want to open the line."""
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)  # whoever else is ready goes first
        sent.append(message)

    line = Line(send)
    router.script = None
    submitted = await router.submit(messages_task({"messages": HI}, {}, router.view)[1])
    reply = Streamed(router, [submitted], Timing(), [MessageEvents("t", 1)])
    token = TokenUpdate(attempt=1, index=0, text="Hi")
    await asyncio.gather(reply.begin(line), reply.on_update(line, 0, token), reply.begin(line))
    bodies = b"".join(message.get("body", b"") for message in sent)
    assert bodies.startswith(b"event: message_start")
    assert bodies.count(b"event: message_start") == 1
    assert bodies.index(b"message_start") < bodies.index(b"content_block_start")
