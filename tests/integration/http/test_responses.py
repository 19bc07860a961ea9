"""OpenAI's Responses, as docs/http/openai.md promises them and as OpenAI's own client sees them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import openai
import pytest

from support.eventually import PATIENCE_S
from support.playing import ARGUMENTS, breaks, calls, is_cut, thinks
from support.router_port import MemoryRouter, Play

TOOL: Any = {
    "type": "function",
    "name": "weather",
    "description": "d",
    "parameters": {"type": "object"},
    "strict": False,
}


@pytest.fixture
async def client(url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="secret", max_retries=0, timeout=PATIENCE_S) as client:
        yield client


def events_of(text: str) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


async def test_a_whole_response(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    response = await client.responses.create(
        model="qwen3", input="Hi", instructions="Be brief", max_output_tokens=9, prompt_cache_key="c1"
    )
    assert (response.output_text, response.status, response.model) == ("Hello world", "completed", "qwen3")
    assert response.usage is not None and response.usage.total_tokens == 15
    asked = router.last.asked
    assert asked.body.messages == ({"role": "system", "content": "Be brief"}, {"role": "user", "content": "Hi"})
    assert (asked.options.max_tokens, asked.session) == (9, "c1")


async def test_a_stream_has_its_events_numbered_in_their_order(http: httpx.AsyncClient) -> None:
    events = events_of((await http.post("/v1/responses", json={"input": "Hi", "stream": True})).text)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert [event["type"].removeprefix("response.") for event in events] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hello world"
    assert events[-1]["response"]["headrace"]["worker_name"] == "desktop"


async def test_reasoning_is_an_item_before_the_message(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    router.script = thinks
    whole = await client.responses.create(model="qwen3", input="Hi")
    async with client.responses.stream(model="qwen3", input="Hi") as stream:
        kinds = [event.type async for event in stream]
        streamed = await stream.get_final_response()
    assert "response.reasoning_text.delta" in kinds
    for response in (whole, streamed):
        assert [item.type for item in response.output] == ["reasoning", "message"]
        assert response.output_text == "It is 4."


@pytest.mark.parametrize("shape", ["split", "buffered", "only at the end"])
async def test_case_35_tool_calls_come_out_whole(client: openai.AsyncOpenAI, router: MemoryRouter, shape: str) -> None:
    router.script = calls(shape)
    whole = await client.responses.create(model="qwen3", input="Hi", tools=[TOOL], tool_choice="required")
    assert router.last.asked.body.extra["tools"][0]["function"]["name"] == "weather"
    async with client.responses.stream(model="qwen3", input="Hi", tools=[TOOL]) as stream:
        done = [event.item async for event in stream if event.type == "response.output_item.done"]
        streamed = await stream.get_final_response()
    for items in (whole.output, streamed.output, done):
        assert [item.type for item in items] == ["function_call", "function_call"]
        assert [(item.call_id, item.name, item.arguments) for item in items if item.type == "function_call"] == [
            ("c1", "weather", ARGUMENTS),
            ("c2", "clock", "{}"),
        ]


async def test_a_custom_tool_is_called_with_its_text(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "patch", "arguments": '{"input":"*** Begin"}'}}

    async def patches(play: Play) -> None:
        await play.start()
        await play.say("", tool_calls=({"index": 0, **call},))
        await play.complete(tool_calls=(call,))

    router.script = patches
    tools: Any = [{"type": "custom", "name": "patch"}, {"type": "web_search"}]
    async with client.responses.stream(model="qwen3", input="Hi", tools=tools) as stream:
        done = [event.item async for event in stream if event.type == "response.output_item.done"]
    assert [(item.type, item.input) for item in done if item.type == "custom_tool_call"] == [
        ("custom_tool_call", "*** Begin")
    ]
    assert len(router.last.asked.body.extra["tools"]) == 1, "nobody here searches the web for a model"


async def test_an_assistant_that_speaks_twice_is_heard_twice(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    """Agents say what they will do, and then what they found, without anybody between."""
    said: Any = [
        {"type": "reasoning", "id": "r1", "summary": [], "content": [{"type": "reasoning_text", "text": "One."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "reasoning", "id": "r2", "summary": [], "content": [{"type": "reasoning_text", "text": "Two."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Found."}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": ARGUMENTS},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
    ]
    await client.responses.create(model="qwen3", input=said)
    first, second, result = router.last.asked.body.messages
    assert first == {"role": "assistant", "content": "I look.", "reasoning_content": "One."}
    assert (second["content"], second["reasoning_content"]) == ("Found.", "Two.")
    assert [call["id"] for call in second["tool_calls"]] == [result["tool_call_id"]] == ["c1"]


async def test_items_become_chat_messages(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    items: Any = [
        {"role": "developer", "content": [{"type": "input_text", "text": "Rules"}]},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is it?"},
                {"type": "input_image", "image_url": "https://x/a.png", "detail": "low"},
            ],
        },
        {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": ARGUMENTS},
        {"type": "function_call_output", "call_id": "c1", "output": "rain"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Rain."}]},
    ]
    await client.responses.create(
        model="qwen3", input=items, reasoning={"effort": "low"},
        text={"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}},
    )  # fmt: skip
    body = router.last.asked.body
    assert body.messages == (
        {"role": "system", "content": "Rules"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": "https://x/a.png", "detail": "low"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Hm.",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "rain"},
        {"role": "assistant", "content": "Rain."},
    )
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    assert body.extra == {"response_format": schema, "reasoning_effort": "low"}


async def test_a_response_is_gone_on_with_by_its_id(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    first = await client.responses.create(model="qwen3", input="Hi", instructions="Be brief")
    await client.responses.create(model="qwen3", input="And?", instructions="Be long", previous_response_id=first.id)
    assert [message["content"] for message in router.last.asked.body.messages] == [
        "Be long",
        "Hi",
        "Hello world",
        "And?",
    ]
    shown = await client.responses.retrieve(first.id)
    assert (shown.output_text, shown.status) == ("Hello world", "completed")


async def test_items_of_former_responses_may_be_named_alone(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    """As Vercel's AI SDK does, since OpenAI keeps them."""

    async def calls(play: Play) -> None:
        await play.start()
        call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}
        await play.complete("I look.", thinking="Hm.", tool_calls=(call,))

    router.script = calls
    first = await client.responses.create(model="qwen3", input="Hi")
    named: Any = [{"type": "item_reference", "id": item.id} for item in first.output]
    result: Any = {"type": "function_call_output", "call_id": "c1", "output": "rain"}
    await client.responses.create(model="qwen3", input=[{"role": "user", "content": "Hi"}, *named, result])
    _, said, told = router.last.asked.body.messages
    assert (said["content"], said["reasoning_content"]) == ("I look.", "Hm.")
    assert said["tool_calls"][0]["function"] == {"name": "weather", "arguments": ARGUMENTS}
    assert (told["role"], told["tool_call_id"]) == ("tool", "c1")
    await client.responses.create(model="qwen3", input=[result], previous_response_id=first.id)
    assert router.last.asked.body.messages[1] == said
    more = {"type": "item_reference", "id": f"{named[1]['id']}_1"}  # as a stream numbers what was told in parts
    await client.responses.create(model="qwen3", input=[{"role": "user", "content": "Hi"}, *named, more, result])
    assert router.last.asked.body.messages[1] == said
    for asker, item in ((client.with_options(api_key="other"), named[1]), (client, named[1] | {"id": "msg_nobody"})):
        with pytest.raises(openai.BadRequestError, match="send the whole input"):
            await asker.responses.create(model="qwen3", input=[item])


async def test_a_response_that_nobody_knows_or_another_asked_is_refused(
    client: openai.AsyncOpenAI, router: MemoryRouter
) -> None:
    first = await client.responses.create(model="qwen3", input="Hi")
    for asker, response in ((client, "resp_nobody"), (client, "x"), (client.with_options(api_key="other"), first.id)):
        with pytest.raises(openai.BadRequestError, match="send the whole input"):
            await asker.responses.create(model="qwen3", input="And?", previous_response_id=response)
        with pytest.raises(openai.NotFoundError):
            await asker.responses.retrieve(response)
    assert len(router.plays) == 1


async def test_an_answer_that_was_cut_off_is_incomplete(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    router.script = is_cut
    response = await client.responses.create(model="qwen3", input="Hi")
    assert response.status == "incomplete"
    assert response.incomplete_details is not None and response.incomplete_details.reason == "max_output_tokens"


async def test_a_stream_that_breaks_ends_as_failed(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.script = breaks
    events = events_of((await http.post("/v1/responses", json={"input": "Hi", "stream": True})).text)
    assert events[-1]["type"] == "response.failed"
    assert "desktop went away" in events[-1]["response"]["error"]["message"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": 7}, "input"),
        ({"input": [7]}, "input[0]"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]},
            "input[0].content[0].image_url",
        ),
        ({"input": [{"type": "function_call", "name": "x", "arguments": "{}"}]}, "input[0].call_id"),
        ({"input": "Hi", "conversation": "c"}, "conversation"),
        ({"input": "Hi", "background": True}, "background"),
        ({"input": "Hi", "tools": [{"name": "x"}]}, "tools[0]"),
    ],
)
async def test_a_bad_request_names_its_parameter(http: httpx.AsyncClient, body: dict[str, Any], param: str) -> None:
    reply = await http.post("/v1/responses", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


async def test_a_model_sees_the_tools_alone_that_are_allowed(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    other = {**TOOL, "name": "subtract"}
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "subtract"}]}
    asks = {"model": "qwen3", "input": "Hi", "tools": [TOOL, other], "tool_choice": allowed}
    reply = await http.post("/v1/responses", json=asks)
    assert (reply.status_code, reply.json()["tool_choice"]) == (200, allowed)
    extra = router.last.asked.body.extra
    assert ([tool["function"]["name"] for tool in extra["tools"]], extra["tool_choice"]) == (["subtract"], "required")
