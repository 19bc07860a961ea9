"""What OpenAI's API has beside one plain answer: choices, plain completions, embeddings, models, side tasks, statuses."""

from __future__ import annotations

import base64
import struct
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import openai
import pytest

from schemas.events import ModelInfo
from services.router.fleet import Fleet
from services.router.http.live import Timing
from services.router.port import Busy
from support.eventually import PATIENCE_S
from support.playing import CALL, OTHER, calls
from support.router_port import DESKTOP, LAPTOP, MemoryRouter, Play

HI: Any = [{"role": "user", "content": "Hi"}]
NOMIC = ModelInfo(name="nomic", backend_name="nomic", capability="embedding", capabilities=("embedding",))
PROBABLE = {"token": "Hi", "logprob": -0.5, "bytes": [72, 105], "top_logprobs": [{"token": "Yo", "logprob": -1.0}]}


@pytest.fixture
async def client(url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="secret", max_retries=0, timeout=PATIENCE_S) as client:
        yield client


async def numbered(play: Play) -> None:
    """Each task says its own number."""
    await play.start()
    await play.say(f"I am {play.status.task}")
    await play.complete()


async def test_several_choices_are_tasks_side_by_side(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    router.script = numbered
    answer = await client.chat.completions.create(model="qwen3", messages=HI, n=3, seed=5)
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert [choice.message.content for choice in answer.choices] == ["I am t1", "I am t2", "I am t3"]
    assert answer.usage is not None and (answer.usage.completion_tokens, answer.usage.prompt_tokens) == (9, 12)
    asked = [play.asked for play in router.plays.values()]
    assert len({task.parent for task in asked}) == 1 and asked[0].parent is not None
    assert [task.options.seed for task in asked] == [5, 6, 7]


async def test_several_choices_stream_together(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    router.script = numbered
    stream = await client.chat.completions.create(
        model="qwen3", messages=HI, n=2, stream=True, stream_options={"include_usage": True}
    )
    texts: dict[int, str] = {0: "", 1: ""}
    ends: list[int] = []
    usage = []
    async for chunk in stream:
        usage += [chunk.usage] if chunk.usage else []
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
            ends += [choice.index] if choice.finish_reason else []
    assert texts == {0: "I am t1", 1: "I am t2"}
    assert sorted(ends) == [0, 1]
    assert [(each.completion_tokens, each.prompt_tokens) for each in usage] == [(6, 12)], "one prompt, counted once"


async def test_where_one_choice_fails_the_others_are_cancelled(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    async def first_fails(play: Play) -> None:
        await play.start()
        if play.status.task == "t1":
            await play.followed()
            await play.fail("oom", "out of memory")

    router.script = first_fails
    reply = await http.post("/v1/chat/completions", json={"messages": HI, "n": 2})
    assert (reply.status_code, reply.json()["error"]["code"]) == (502, "oom")
    assert router.plays["t2"].status.state == "cancelled"


async def test_where_one_choice_is_refused_none_is_asked(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    async def then_full(play: Play) -> None:
        router.refusal = Busy("the queue is full", retry_after_s=2)

    router.script = then_full
    submit = router.submit

    async def one_place(task: Any) -> Any:
        submitted = await submit(task)
        router.refusal = Busy("the queue is full", retry_after_s=2)
        return submitted

    router.submit = one_place  # type: ignore[method-assign]
    reply = await http.post("/v1/chat/completions", json={"messages": HI, "n": 2})
    assert reply.status_code == 429
    assert router.plays["t1"].status.state == "cancelled"


@pytest.mark.parametrize("shape", ["split", "buffered", "only at the end"])
async def test_case_35_tool_calls_come_out_whole(client: openai.AsyncOpenAI, router: MemoryRouter, shape: str) -> None:
    router.script = calls(shape)
    asks: Any = {"model": "qwen3", "messages": HI, "tools": [{"type": "function", "function": {"name": "weather"}}]}
    whole = await client.chat.completions.create(**asks)
    joined: dict[int, dict[str, Any]] = {}
    async for chunk in await client.chat.completions.create(**asks, stream=True):
        for call in chunk.choices[0].delta.tool_calls or ():
            one = joined.setdefault(call.index, {"id": None, "name": "", "arguments": ""})
            one["id"] = call.id or one["id"]
            one["name"] += (call.function and call.function.name) or ""
            one["arguments"] += (call.function and call.function.arguments) or ""
        last = chunk.choices[0].finish_reason
    assert last == whole.choices[0].finish_reason == "tool_calls"
    expected = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in (CALL, OTHER)]
    assert [(one["id"], one["name"], one["arguments"]) for one in joined.values()] == expected
    assert [
        (call.id, call.function.name, call.function.arguments)
        for call in whole.choices[0].message.tool_calls or ()
        if call.type == "function"
    ] == expected


async def probable(play: Play) -> None:
    await play.start()
    await play.complete("Hi", logprobs=(PROBABLE,))


async def test_logprobs_come_where_the_backend_has_them(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    router.script = probable
    whole = await client.chat.completions.create(model="qwen3", messages=HI, logprobs=True, top_logprobs=1)
    assert router.last.asked.body.extra == {"logprobs": True, "top_logprobs": 1}
    chunks = [c async for c in await client.chat.completions.create(model="qwen3", messages=HI, stream=True)]
    for choice in (whole.choices[0], chunks[0].choices[0]):
        assert choice.logprobs is not None and choice.logprobs.content is not None
        assert [(each.token, each.logprob) for each in choice.logprobs.content] == [("Hi", -0.5)]
    plain = await client.completions.create(model="qwen3", prompt="x", logprobs=1)
    assert plain.choices[0].logprobs is not None
    assert plain.choices[0].logprobs.tokens == ["Hi"]
    assert plain.choices[0].logprobs.top_logprobs == [{"Yo": -1.0}]


async def test_plain_completions_of_several_prompts(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    router.script = numbered
    answer = await client.completions.create(model="qwen3", prompt=["a", "b"], n=2, max_tokens=7, suffix="!")
    assert [(choice.index, choice.text) for choice in answer.choices] == [(n, f"I am t{n + 1}") for n in range(4)]
    assert answer.usage is not None and (answer.usage.completion_tokens, answer.usage.prompt_tokens) == (12, 24)
    asked = [play.asked for play in router.plays.values()]
    assert [task.body.prompt for task in asked] == ["a", "a", "b", "b"]
    assert {(task.kind, task.options.max_tokens, task.body.extra["suffix"]) for task in asked} == {
        ("completion", 7, "!")
    }
    text = ""
    async for chunk in await client.completions.create(model="qwen3", prompt="a", stream=True):
        text += chunk.choices[0].text
    assert (text, router.last.asked.options.max_tokens) == ("I am t5", 16)


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("completions", {}, "prompt"),
        ("completions", {"prompt": []}, "prompt"),
        ("completions", {"prompt": [1, 2]}, "prompt"),
        ("completions", {"prompt": ["a"] * 5, "n": 4}, "prompt"),
        ("embeddings", {"input": []}, "input"),
        ("embeddings", {"input": [[1, 2]]}, "input"),
        ("embeddings", {"input": {"a": 1}}, "input"),
        ("embeddings", {"input": "a", "encoding_format": "hex"}, "encoding_format"),
    ],
)
async def test_a_bad_request_names_its_parameter(
    http: httpx.AsyncClient, path: str, body: dict[str, Any], param: str
) -> None:
    reply = await http.post(f"/v1/{path}", json=body)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


async def embeds(play: Play) -> None:
    await play.start(model="nomic")
    await play.complete("", vectors=tuple((float(len(text)), 0.5) for text in play.asked.body.inputs))


def embedders(*names: str) -> Fleet:
    models = {name: msgspec.structs.replace(NOMIC, name=name) for name in names}
    desktop = msgspec.structs.replace(DESKTOP, models={**DESKTOP.models, **models})
    return Fleet(workers={each.id: each for each in (desktop, LAPTOP)})


async def test_embeddings_in_both_forms(
    client: openai.AsyncOpenAI, http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    router.script, router.view = embeds, embedders("nomic")
    found = await client.embeddings.create(model="nomic", input=["a", "bbb"], dimensions=2)
    assert [each.embedding for each in found.data] == [[1.0, 0.5], [3.0, 0.5]]
    assert router.last.asked.body.extra == {"dimensions": 2}
    assert (router.last.asked.kind, router.last.asked.session) == ("embedding", None)
    reply = (await http.post("/v1/embeddings", json={"input": "abc", "encoding_format": "base64"})).json()
    assert struct.unpack("<2f", base64.b64decode(reply["data"][0]["embedding"])) == (3.0, 0.5)
    assert router.last.asked.wants.model == "nomic"


async def test_many_texts_are_several_tasks_in_order(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.script, router.view = embeds, embedders("nomic")
    texts = ["x" * n for n in range(1, 131)]
    reply = (await http.post("/v1/embeddings", json={"input": texts, "model": "nomic"})).json()
    assert [each["embedding"][0] for each in reply["data"]] == [float(n) for n in range(1, 131)]
    assert [each["index"] for each in reply["data"]] == list(range(130))
    assert (len(router.plays), reply["usage"]["prompt_tokens"]) == (3, 36)


async def test_embeddings_of_no_model_are_refused_where_several_make_them(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    router.view = embedders("nomic", "bge")
    reply = await http.post("/v1/embeddings", json={"input": "a", "model": "auto"})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "model")
    assert "bge, nomic" in reply.json()["error"]["message"]


async def test_models_say_who_holds_them(client: openai.AsyncOpenAI, http: httpx.AsyncClient) -> None:
    rows = {row["id"]: row for row in (await http.get("/v1/models")).json()["data"]}
    assert (rows["auto"]["kind"], rows["auto"]["owned_by"]) == ("route", "headrace")
    assert (rows["qwen3"]["kind"], rows["qwen3"]["owned_by"], rows["qwen3"]["context"]) == ("model", "desktop", 40960)
    assert [holder["worker_name"] for holder in rows["smollm2:135m"]["held_by"]] == ["desktop", "laptop"]
    assert (await client.models.retrieve("smollm2:135m")).owned_by == "desktop, laptop"
    with pytest.raises(openai.NotFoundError, match="nearest: qwen3"):
        await client.models.retrieve("qwen33")


async def test_a_chats_side_task_is_in_the_background(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    headers = {"x-openwebui-chat-id": "c1", "x-openwebui-user-id": "u1", "x-openwebui-task": "title_generation"}
    reply = await http.post("/v1/chat/completions", json={"messages": HI, "stream": True}, headers=headers)
    asked = router.last.asked
    assert (asked.urgency, asked.session, asked.client) == ("background", None, "u1")
    assert '"event"' not in reply.text, "nobody looks at a title's status"


async def waits(play: Play) -> None:
    await play.move(position=2, eta_s=4.0, model="qwen3", expected_worker="w-1")
    await play.start()
    await play.start()
    await play.say("Hi")
    await play.complete()


@pytest.mark.parametrize("timing", [Timing(hold_s=0.0)])
async def test_open_webui_and_only_it_sees_the_status_once_for_each_change(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    router.script = waits
    body = {"messages": HI, "stream": True}
    reply = await http.post("/v1/chat/completions", json=body, headers={"x-openwebui-chat-id": "c1"})
    lines = [msgspec.json.decode(line[6:]) for line in reply.text.splitlines() if line.startswith('data: {"event"')]
    shown = [(line["event"]["data"]["description"], line["event"]["data"]["done"]) for line in lines]
    assert shown[-1] == ("general → qwen3 @ desktop", True)
    assert len(shown) == len(set(shown))
    assert '"event"' not in (await http.post("/v1/chat/completions", json=body)).text
