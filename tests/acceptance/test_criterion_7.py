"""One real Headrace over four servers of three kinds, as the clients of OpenAI's API see it: criterion 7, and case 4.

Two real llama.cpp servers, an Ollama and a vLLM stand-in, each with its own name for what ``[models]`` calls ``small``. The
stand-ins also play what a small model will not do on demand: tool calls, refusals.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import openai
import pytest
import pytest_asyncio

from schemas.events import TaskReleased, TaskRouted, TaskStarted
from schemas.subjects import group_durable
from services.cli.demo_model import MODEL_NAME, missing_parts
from services.cli.fleet_process import DemoFleet
from services.cli.parts import BackendAt
from services.runtime.bus import Bus
from support.backends import (
    DONE,
    Gate,
    Script,
    Stub,
    line,
    ollama_done,
    ollama_frame,
    ollama_stand_in,
    openai_frame,
    openai_usage,
    vllm_stand_in,
)
from support.eventually import eventually
from support.proving import Json, Proof

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(bool(missing_parts()), reason=f"not installed: {[part.package for part in missing_parts()]}"),
]

NAME = "small"
MODELS = f'[models]\n"{MODEL_NAME}" = "{NAME}"\n"m:latest" = "{NAME}"\n"org/m" = "{NAME}"\n'
OFTEN = "[worker]\nheartbeat_s = 1.0\n"
"""An idle machine that says so every 5 s is taken for silent (6 s) where it waits a second for a core, and a group for unsafe."""
KINDS = {"fast": "llama.cpp", "slow": "llama.cpp", "box": "ollama", "rack": "vllm"}
HI: list[Any] = [{"role": "user", "content": "Hi, who are you?"}]
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CITY = {"city": "東京"}


class Site(NamedTuple):
    proof: Proof
    client: openai.AsyncOpenAI
    box: Stub
    rack: Stub


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder: Path = tmp_path_factory.mktemp("site")
    config = folder / "headrace.toml"
    config.write_text(MODELS + OFTEN)
    async with AsyncExitStack() as running:
        box = await running.enter_async_context(ollama_stand_in())
        rack = await running.enter_async_context(vllm_stand_in())
        fleet = await running.enter_async_context(DemoFleet(folder / "data", sync="10s", restart=False, config=config))
        await fleet.stack.join([BackendAt("box", box.url, "box"), BackendAt("rack", rack.url, "rack")])
        proof = Proof(fleet.stack)
        running.push_async_callback(proof.http.aclose)
        client = openai.AsyncOpenAI(
            base_url=f"{fleet.router_url}/v1", api_key="secret", max_retries=0, timeout=60,
            http_client=openai.DefaultAsyncHttpxClient(trust_env=False),
        )  # fmt: skip
        await running.enter_async_context(client)
        await proof.quiet()
        yield Site(proof, client, box, rack)


def on(machine: str) -> dict[str, Any]:
    return {"headrace": {"worker": machine}}


async def chat(site: Site, machine: str, **asked: Any) -> Any:
    """The real client's answer or stream from one machine."""
    usual: dict[str, Any] = {"model": NAME, "messages": HI, "extra_body": on(machine)}
    return await site.client.chat.completions.create(**(usual | asked))


async def paused(site: Site, name: str) -> bool:
    return bool((await site.proof.workers())[name]["state"] == "paused")


# -- one name --------------------------------------------------------------------------------------------------------------


async def test_one_name_is_answered_by_every_kind_of_server_through_one_group(site: Site) -> None:
    """Nobody promises to spread what comes: a machine that answers faster than it is asked gets all of it. So the stand-ins keep
    their first answers, beside which everything else waits, until a real server has given one."""
    gate, held = Gate(), [name for name, kind in KINDS.items() if kind == "llama.cpp"]
    site.box.scripts.append(Script([ollama_frame("Hi"), gate, ollama_done()], 200, "application/x-ndjson"))
    rest = [openai_frame(None, "stop"), openai_usage(), DONE]
    site.rack.scripts.append(Script([openai_frame("Hi"), gate, *rest], 200, "text/event-stream"))
    for name in held:
        (await site.proof.http.post(f"/workers/{name}/pause")).raise_for_status()
        await eventually(partial(paused, site, name))

    async def ask(n: int) -> tuple[str, str, str]:
        raw = await site.client.chat.completions.with_raw_response.create(
            model=NAME, messages=[{"role": "user", "content": f"Say {n}."}], max_tokens=8
        )
        return raw.parse().model, raw.headers["x-headrace-worker"], raw.headers["x-headrace-task"]

    asked = [asyncio.create_task(ask(n)) for n in range(30)]
    await eventually(lambda: site.box.chats() and site.rack.chats())
    for name in held:
        (await site.proof.http.post(f"/workers/{name}/resume")).raise_for_status()
    await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)  # only these two can end one
    gate.opened.set()
    answers = await asyncio.gather(*asked)
    machines, tasks = Counter(worker for _, worker, _ in answers), {task for _, _, task in answers}
    print(f"\n30 requests for {NAME!r}: {dict(machines)}")
    assert {model for model, _, _ in answers} == {NAME}
    assert {KINDS[worker] for worker in machines} == {"llama.cpp", "ollama", "vllm"}
    assert {chat["model"] for chat in site.box.chats()} == {"m:latest"}
    assert {chat["model"] for chat in site.rack.chats()} == {"org/m"}
    released = [e.event for e in await site.proof.log() if isinstance(e.event, TaskReleased)]
    lanes = Counter(event.lane for event in released if event.task in tasks)
    assert lanes["any"] > len(tasks) / 2, "a lane is taken only while some holder was not heard for 6 s"
    async with await Bus.connect(site.proof.stack.nats_url, name="test") as bus:
        names = (await bus.api("CONSUMER.NAMES.TASKS"))["consumers"]
    groups = [name for name in names if name.startswith("g~")]
    assert set(groups) == {group_durable("cpu_inference", name) for name in (NAME, "big:70b")}


async def test_the_one_name_is_listed_once_and_its_holders_with_their_own(site: Site) -> None:
    assert [model.id async for model in site.client.models.list()] == ["auto", "big:70b", NAME]
    rows = (await site.proof.http.get("/models")).json()["models"]
    (row,) = [row for row in rows if row["name"] == NAME]
    own = {holder["worker_name"]: holder["backend_name"] for holder in row["holders"]}
    assert own == {"fast": MODEL_NAME, "slow": MODEL_NAME, "box": "m:latest", "rack": "org/m"}


# -- the openai client -----------------------------------------------------------------------------------------------------


async def test_the_real_client_gets_a_whole_answer_of_a_real_model(site: Site) -> None:
    answer = await chat(site, "fast", max_tokens=12, temperature=0.0)
    said = answer.choices[0].message
    assert said.role == "assistant" and said.content and said.content.strip()
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert 0 < answer.usage.completion_tokens <= 12
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


async def test_the_real_client_streams_what_a_whole_answer_says(site: Site) -> None:
    asked: dict[str, Any] = {"max_tokens": 12, "temperature": 0.0}
    whole = await chat(site, "fast", **asked)
    stream = await chat(site, "fast", **asked, stream=True, stream_options={"include_usage": True})
    chunks = [chunk async for chunk in stream]
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == whole.choices[0].message.content
    assert sum(bool(text) for text in texts) > 3, "tokens come as they are made"
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


async def test_a_schema_reaches_the_real_model(site: Site) -> None:
    """llama.cpp samples by the schema's grammar, so that even a small model keeps to it."""
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema}}
    answer = await chat(site, "fast", max_tokens=40, response_format=form)
    assert set(json.loads(answer.choices[0].message.content)) == {"ok"}


@pytest.mark.parametrize("machine", ["box", "rack"])
@pytest.mark.parametrize("streams", [False, True])
async def test_tools_go_to_the_server_and_its_calls_come_back(site: Site, machine: str, streams: bool) -> None:
    stub = site.box if machine == "box" else site.rack
    stub.scripts.append(tool_script(machine))
    answer = await chat(site, machine, tools=[TOOL], stream=streams)
    if streams:
        chunks = [chunk async for chunk in answer if chunk.choices]
        parts = [call for chunk in chunks for call in chunk.choices[0].delta.tool_calls or ()]
        assert {part.index for part in parts} == {0}
        functions = [part.function for part in parts if part.function is not None]
        name, arguments = ("".join(f.name or "" for f in functions), "".join(f.arguments or "" for f in functions))
        reason = chunks[-1].choices[0].finish_reason
    else:
        (call,) = answer.choices[0].message.tool_calls
        assert call.type == "function" and call.id
        name, arguments, reason = call.function.name, call.function.arguments, answer.choices[0].finish_reason
    assert (name, json.loads(arguments), reason) == ("weather", CITY, "tool_calls")
    assert stub.chats()[-1]["tools"] == [TOOL]


async def test_a_tools_result_goes_back_with_the_whole_history(site: Site) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": json.dumps(CITY)}}
    history: list[Any] = [
        *HI,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    await chat(site, "rack", messages=history, tools=[TOOL])
    sent = site.rack.chats()[-1]["messages"]
    assert sent == history


def tool_script(machine: str) -> Script:
    if machine == "box":
        call = {"function": {"name": "weather", "arguments": CITY}}
        return Script([ollama_frame("", tool_calls=[call]), ollama_done()], 200, "application/x-ndjson")
    first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "weather", "arguments": ""}}
    rest = [{"index": 0, "function": {"arguments": part}} for part in ('{"city": ', '"東京"}')]
    frames = [openai_frame(None, tool_calls=[delta]) for delta in (first, *rest)]
    return Script([*frames, openai_frame(None, "tool_calls"), openai_usage(), DONE], 200, "text/event-stream")


# -- its errors ------------------------------------------------------------------------------------------------------------


async def test_an_unknown_model_is_told_with_the_nearest_name(site: Site) -> None:
    with pytest.raises(openai.NotFoundError, match=NAME) as caught:
        await chat(site, "fast", model="smal")
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


async def test_a_request_that_cannot_be_read_is_the_clients_mistake(site: Site) -> None:
    with pytest.raises(openai.BadRequestError, match="messages") as caught:
        await chat(site, "fast", messages="Hi")
    assert caught.value.type == "invalid_request_error"


@pytest.mark.parametrize("streams", [False, True])
async def test_a_prompt_that_the_real_server_refuses_is_the_clients_mistake(site: Site, streams: bool) -> None:
    """3,000 tokens into a context of 2,048: too near to be refused by an estimate, so the server's word decides."""
    with pytest.raises(openai.APIError, match="context"):
        answer = await chat(site, "fast", messages=[{"role": "user", "content": "one two " * 1500}], stream=streams)
        if streams:
            assert [chunk async for chunk in answer] == []


async def test_what_every_server_refuses_keeps_its_status_and_words(site: Site) -> None:
    site.rack.scripts.append(Script([line({"error": {"message": "no such option: wibble"}})], 400))
    with pytest.raises(openai.BadRequestError, match="wibble") as caught:
        await chat(site, "rack")
    assert caught.value.code == "rejected"


# -- curl ------------------------------------------------------------------------------------------------------------------


async def curl(url: str, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "curl", "-sS", "--noproxy", "*", "--max-time", "30", *arguments, url, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_plain_curl_gets_a_whole_answer_a_stream_and_an_error(site: Site) -> None:
    url = f"{site.proof.stack.router_url}/v1/chat/completions"
    body: Json = {"model": NAME, "messages": HI, "max_tokens": 6, **on("fast")}
    whole = json.loads(await curl(url, "-d", json.dumps(body)))
    assert whole["choices"][0]["message"]["content"].strip()
    assert whole["headrace"]["worker_name"] == "fast"
    streamed = await curl(url, "-N", "-d", json.dumps(body | {"stream": True}))
    assert streamed.endswith("data: [DONE]\n\n")
    chunks = [json.loads(data) for data in map(data_of, streamed.split("\n\n")) if data not in ("", "[DONE]")]
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks).strip()
    refused = await curl(url, "-w", "%{http_code}", "-d", json.dumps(body | {"model": "smal"}))
    assert refused.endswith("404") and "model_not_found" in refused
    listed = json.loads(await curl(f"{site.proof.stack.router_url}/v1/models"))
    assert NAME in [model["id"] for model in listed["data"]]


def data_of(event: str) -> str:
    return event.removeprefix("data: ") if event.startswith("data: ") else ""


# -- which machine answered ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("machine", sorted(KINDS))
@pytest.mark.parametrize("streams", [False, True])
async def test_case_04_headers_status_and_stored_decision_name_the_machine_that_answered(
    site: Site, machine: str, streams: bool
) -> None:
    """The machine is known by the test, and by what its own server saw; the reason is the decision's."""
    proof, seen = site.proof, {"box": site.box, "rack": site.rack}
    before = {name: len(stub.chats()) for name, stub in seen.items()}
    body = {"model": NAME, "messages": HI, "max_tokens": 4, "stream": streams, **on(machine)}
    answer = await proof.http.post("/v1/chat/completions", json=body)
    assert {name for name, stub in seen.items() if len(stub.chats()) > before[name]} == {machine} & set(seen)
    task, headers = answer.headers["x-headrace-task"], answer.headers
    worker = (await proof.workers())[machine]["id"]
    (_, routed), (_, started) = (await proof.said(TaskRouted, task))[0], (await proof.said(TaskStarted, task))[0]
    assert routed.choice is not None
    assert (routed.choice.worker, started.worker) == (worker, worker)
    assert (headers["x-headrace-worker"], headers["x-headrace-model"]) == (machine, NAME)
    assert headers["x-headrace-reason"] == routed.choice.reason
    told = own_object(answer)
    assert (told["worker"], told["worker_name"], told["reason"]) == (worker, machine, routed.choice.reason)
    shown = await proof.task(task)
    assert (shown["worker_name"], shown["status"]["worker"]) == (machine, worker)
    explained = (await proof.http.get(f"/explain/{task}")).json()
    assert explained["decision"]["choice"] == {"model": NAME, "worker": worker, "reason": routed.choice.reason}
    assert machine in " ".join(explained["words"])


async def test_case_04_a_choice_left_open_names_who_really_answered(site: Site) -> None:
    """In a burst others answer than were expected; every surface names the one that did."""
    asked = {"model": "auto", "messages": HI, "max_tokens": 4}
    answers = await asyncio.gather(*(site.proof.http.post("/v1/chat/completions", json=asked) for _ in range(8)))
    names = {worker["id"]: name for name, worker in (await site.proof.workers()).items()}
    starts = {e.event.task: e.event.worker for e in await site.proof.log() if isinstance(e.event, TaskStarted)}
    for answer in answers:
        machine = names[starts[answer.headers["x-headrace-task"]]]
        assert (answer.headers["x-headrace-worker"], own_object(answer)["worker_name"]) == (machine, machine)


def own_object(answer: httpx.Response) -> Json:
    """Ours in the reply: of a stream, the last chunk with a choice has it."""
    if not answer.headers["content-type"].startswith("text/event-stream"):
        found: Json = answer.json()["headrace"]
        return found
    chunks = [data_of(event) for event in answer.text.split("\n\n")]
    (own,) = [json.loads(data)["headrace"] for data in chunks if '"headrace":' in data]
    return dict(own)
