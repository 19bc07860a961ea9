"""Ollama's surface, as docs/http/ollama.md promises it and as the official client sees it."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import ollama
import pytest

from schemas.events import FailureClass, ModelInfo, Times
from services.router.http.live import Timing
from services.router.policy.routes import Route, Routes
from services.router.port import Busy, RoutesInForce
from support.eventually import PATIENCE_S
from support.router_port import DESKTOP, MemoryRouter, Play

HI = [{"role": "user", "content": "Hi"}]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(200))
TIMES = Times(load_s=0.25, prefill_s=0.5, decode_s=2.0, total_s=2.75, source="backend")
TOOL = {"type": "function", "function": {"name": "add", "description": "Adds", "parameters": {"type": "object"}}}


@pytest.fixture
async def client(url: str) -> AsyncIterator[ollama.AsyncClient]:
    async with ollama.AsyncClient(host=url, timeout=PATIENCE_S) as client:
        yield client


@pytest.fixture
def held(router: MemoryRouter) -> MemoryRouter:
    """The test plays the task itself."""
    router.script = None
    return router


def lines_of(reply: httpx.Response) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in reply.content.splitlines()]


# -- what there is -----------------------------------------------------------------------------------------------------


async def test_the_tags_are_the_virtual_models_and_what_the_fleet_holds(
    client: ollama.AsyncClient, router: MemoryRouter
) -> None:
    router.in_force = RoutesInForce(routes=Routes(routes={"code": Route(name="code", by="policy")}))
    listed = (await client.list()).models
    assert [model.model for model in listed] == ["auto", "code", "qwen3", "smollm2:135m"]
    assert [model.details.family for model in listed if model.details] == ["headrace", "headrace", "qwen", "smollm"]
    assert all(len(model.digest or "") >= 12 for model in listed)  # the command line cuts them there


async def test_what_is_loaded_is_told_with_its_machine_and_window(wire: httpx.AsyncClient) -> None:
    (row,) = (await wire.get("/api/ps")).json()["models"]
    assert (row["name"], row["worker"], row["context_length"]) == ("qwen3", "desktop", 40960)


async def test_a_model_is_shown_with_its_window_and_a_route_with_its_models(client: ollama.AsyncClient) -> None:
    shown = await client.show("qwen3")
    assert shown.modelinfo == {"general.architecture": "qwen", "qwen.context_length": 40960}
    assert shown.capabilities == ["completion"]
    route = await client.show("auto:latest")
    assert "qwen3, smollm2:135m" in str(route.modelfile)
    with pytest.raises(ollama.ResponseError, match="model 'nope' not found") as refused:
        await client.show("nope")
    assert refused.value.status_code == 404


@pytest.mark.parametrize("path", ["/", "/api/version", "/api/tags"])
async def test_a_head_is_answered_as_ollama_answers_it(wire: httpx.AsyncClient, path: str) -> None:
    reply = await wire.head(path)
    assert (reply.status_code, reply.content) == (200, b"")


@pytest.mark.parametrize("headers", [{"accept": "text/plain"}, {"user-agent": "ollama/0.24.0 (amd64 linux)"}])
async def test_clients_of_ollama_are_told_that_it_is_running(wire: httpx.AsyncClient, headers: dict[str, str]) -> None:
    assert (await wire.get("/", headers=headers)).text == "Ollama is running"


# -- chat and generate -------------------------------------------------------------------------------------------------


async def measured(play: Play) -> None:
    await play.start()
    await play.say("Hello", " world")
    await play.complete(times=TIMES)


async def test_a_whole_answer_has_the_attempts_own_durations(client: ollama.AsyncClient, router: MemoryRouter) -> None:
    router.script = measured
    answer = await client.chat("qwen3", HI)
    assert (answer.message.role, answer.message.content) == ("assistant", "Hello world")
    assert (answer.model, answer.done, answer.done_reason) == ("qwen3", True, "stop")
    assert (answer.total_duration, answer.load_duration) == (2_750_000_000, 250_000_000)
    assert (answer.prompt_eval_duration, answer.eval_duration) == (500_000_000, 2_000_000_000)
    assert (answer.prompt_eval_count, answer.eval_count) == (12, 3)


async def test_what_nobody_measured_is_left_out(wire: httpx.AsyncClient) -> None:
    body = (await wire.post("/api/chat", json={"model": "qwen3", "messages": HI, "stream": False})).json()
    assert [name for name in body if name.endswith("duration")] == []


async def test_a_stream_is_the_default_and_ends_with_done(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.script = measured
    reply = await wire.post("/api/chat", json={"model": "auto", "messages": HI})
    assert reply.headers["content-type"] == "application/x-ndjson"
    lines = lines_of(reply)
    assert [line["message"]["content"] for line in lines] == ["Hello", " world", ""]
    assert [line["done"] for line in lines] == [False, False, True]
    assert {line["model"] for line in lines} == {"qwen3"}  # a route has no name of its own in the answer
    assert lines[-1]["total_duration"] == 2_750_000_000
    assert lines[-1]["headrace"]["worker_name"] == "desktop"


async def test_the_model_is_called_as_it_was_asked_for(client: ollama.AsyncClient) -> None:
    stream = await client.generate("smollm2:135m", "Hi", stream=True)
    assert {part.model async for part in stream} == {"smollm2:135m"}


async def test_generate_is_a_chat_with_the_models_own_template(
    client: ollama.AsyncClient, router: MemoryRouter
) -> None:
    answer = await client.generate("qwen3", "Hello", system="Be short", images=[PNG])
    assert answer.response == "Hello world"
    asked = router.last.asked
    uri = "data:image/png;base64," + base64.b64encode(PNG).decode()
    assert asked.kind == "chat"
    assert asked.body.messages == (
        {"role": "system", "content": "Be short"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Hello"}, {"type": "image_url", "image_url": {"url": uri}}],
        },
    )


async def test_a_raw_prompt_is_completed_as_it_is(client: ollama.AsyncClient, router: MemoryRouter) -> None:
    await client.generate("qwen3", "Once upon", raw=True)
    asked = router.last.asked
    assert (asked.kind, asked.body.prompt, asked.body.extra) == ("completion", "Once upon", {"raw": True})


async def test_options_become_the_routers_own_or_go_on_and_none_loads_a_model_anew(
    client: ollama.AsyncClient, router: MemoryRouter
) -> None:
    options = {
        "temperature": 0.5, "top_p": 0.9, "seed": 7, "num_predict": 42, "num_ctx": 8192, "num_gpu": 1, "num_thread": 3,
        "stop": ["END"], "top_k": 5, "mirostat": 2,
    }  # fmt: skip
    await client.chat("qwen3", HI, options=options, format="json", think=False, keep_alive="10m")
    asked = router.last.asked
    given = asked.options
    assert (given.temperature, given.top_p, given.seed, given.max_tokens) == (0.5, 0.9, 7, 42)
    assert asked.wants.context == 8192
    assert asked.body.extra == {
        "stop": ["END"],
        "top_k": 5,
        "options": {"mirostat": 2},
        "response_format": {"type": "json_object"},
        "think": False,
    }


async def test_a_schema_is_passed_on_as_one(client: ollama.AsyncClient, router: MemoryRouter) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    await client.chat("qwen3", HI, format=schema)
    assert router.last.asked.body.extra["response_format"]["json_schema"]["schema"] == schema


async def test_a_chats_side_task_is_in_the_background_and_leaves_its_session_alone(
    wire: httpx.AsyncClient, router: MemoryRouter
) -> None:
    headers = {"x-headrace-task-kind": "title_generation", "x-headrace-session": "chat-7"}
    for path, body in (("/api/chat", {"messages": HI}), ("/api/generate", {"prompt": "Hi"})):
        assert (await wire.post(path, json={"model": "qwen3", **body}, headers=headers)).status_code == 200
        assert (router.last.asked.urgency, router.last.asked.session) == ("background", None)


async def test_an_option_that_ollama_would_answer_with_500_is_named(wire: httpx.AsyncClient) -> None:
    for path, body in (("/api/chat", {"messages": HI}), ("/api/generate", {"prompt": "Hi"})):
        reply = await wire.post(path, json={"model": "qwen3", **body, "options": {"stop": 7}})
        assert (reply.status_code, reply.json()["error"]) == (400, "stop is a int; expected a text or a list of texts")


async def test_a_window_asked_for_is_a_wish(client: ollama.AsyncClient, router: MemoryRouter) -> None:
    for num_ctx, wanted in ((32768, (32768, True)), (0, (None, False))):
        await client.chat("qwen3", HI, options={"num_ctx": num_ctx})
        wants = router.last.asked.wants
        assert (wants.context, wants.context_flexible) == wanted


@pytest.mark.parametrize(
    ("messages", "keep_alive", "reason"), [([], None, "load"), ([], 0, "unload"), ([], "0s", "unload")]
)
async def test_an_empty_request_is_answered_and_runs_nothing(
    client: ollama.AsyncClient, router: MemoryRouter, messages: list[Any], keep_alive: Any, reason: str
) -> None:
    assert (await client.chat("qwen3", messages, keep_alive=keep_alive)).done_reason == reason
    assert (await client.generate("qwen3", keep_alive=keep_alive)).done_reason == reason
    assert router.plays == {}
    with pytest.raises(ollama.ResponseError, match="not found"):
        await client.chat("nope", [])


# -- tools -------------------------------------------------------------------------------------------------------------

NAMED = {"index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": ""}}
FRAGMENTS = (NAMED, *({"index": 0, "function": {"arguments": part}} for part in ('{"a"', ": 1, ", '"b": {}}')))
ONE = {**NAMED, "function": {"name": "add", "arguments": '{"a": 1, "b": {}}'}}


async def split(play: Play) -> None:
    for piece in FRAGMENTS:
        await play.say(tool_calls=(piece,))


async def buffered(play: Play) -> None:
    await play.say("Let me see.")
    await play.say(tool_calls=(ONE,))


async def only_at_the_end(play: Play) -> None:
    """The live pieces never came; the stored answer has the call."""


async def lost_on_the_way(play: Play) -> None:
    await play.say("Let me see.")


async def lost_half_way(play: Play) -> None:
    for piece in FRAGMENTS[:2]:
        await play.say(tool_calls=(piece,))


@pytest.mark.parametrize("shape", [split, buffered, only_at_the_end, lost_on_the_way, lost_half_way])
@pytest.mark.parametrize("stream", [True, False])
async def test_case_35_a_tool_call_comes_whole_and_once_in_each_shape(
    wire: httpx.AsyncClient, router: MemoryRouter, shape: Any, stream: bool
) -> None:
    async def script(play: Play) -> None:
        await play.start()
        await shape(play)
        whole = {key: value for key, value in ONE.items() if key != "index"}
        await play.complete(tool_calls=(whole,), finish_reason="tool_calls")

    router.script = script
    asked = {"model": "qwen3", "messages": HI, "tools": [TOOL], "stream": stream}
    lines = lines_of(await wire.post("/api/chat", json=asked))
    calls = [call for line in lines for call in line["message"].get("tool_calls", ())]
    assert calls == [{"id": "c1", "function": {"index": 0, "name": "add", "arguments": {"a": 1, "b": {}}}}]
    assert (lines[-1]["done"], lines[-1]["done_reason"]) == (True, "stop")
    assert router.last.asked.body.extra["tools"] == [TOOL]


async def test_a_call_whose_arguments_broke_off_is_text(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    async def script(play: Play) -> None:
        await play.start()
        await play.say(tool_calls=({**NAMED, "function": {"name": "add", "arguments": '{"a": '}},))
        await play.complete(finish_reason="length")

    router.script = script
    lines = lines_of(await wire.post("/api/chat", json={"model": "qwen3", "messages": HI}))
    assert [line["message"].get("tool_calls") for line in lines] == [None, None]
    assert '{"name":"add"' in lines[0]["message"]["content"]
    assert lines[-1]["done_reason"] == "length"


async def test_calls_and_their_results_go_on_in_openais_form(client: ollama.AsyncClient, router: MemoryRouter) -> None:
    call = {"function": {"name": "add", "arguments": {"a": 1}}}
    other = {"function": {"name": "now", "arguments": {}}}
    said = [
        *HI,
        {"role": "assistant", "content": "", "thinking": "hm", "tool_calls": [call, other]},
        {"role": "tool", "content": "noon", "tool_name": "now"},
        {"role": "tool", "content": "2", "tool_name": "add"},
    ]
    await client.chat("qwen3", said)
    _, asked, first, second = router.last.asked.body.messages
    assert asked["reasoning_content"] == "hm"
    assert [c["function"]["arguments"] for c in asked["tool_calls"]] == ['{"a":1}', "{}"]
    ids = {c["function"]["name"]: c["id"] for c in asked["tool_calls"]}
    assert (first["tool_call_id"], second["tool_call_id"]) == (ids["now"], ids["add"])


async def test_thinking_streams_beside_the_text(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    async def script(play: Play) -> None:
        await play.start()
        await play.say(thinking="Let me")
        await play.say("Yes")
        await play.complete(thinking="Let me")

    router.script = script
    lines = lines_of(await wire.post("/api/generate", json={"model": "qwen3", "prompt": "Hi", "think": True}))
    assert [line.get("thinking") for line in lines] == ["Let me", None, None]
    assert [line["response"] for line in lines] == ["", "Yes", ""]


async def test_thinking_is_refused_where_each_holder_says_that_it_cannot(
    client: ollama.AsyncClient, router: MemoryRouter
) -> None:
    info = ModelInfo(name="plain", backend_name="plain", lacks=("thinking",))
    desk = msgspec.structs.replace(DESKTOP, models={**DESKTOP.models, "plain": info})
    router.view = msgspec.structs.replace(router.view, workers={**router.view.workers, desk.id: desk})
    with pytest.raises(ollama.ResponseError, match='"plain" does not support thinking') as refused:
        await client.chat("plain", HI, think=True)
    assert refused.value.status_code == 400


# -- embeddings --------------------------------------------------------------------------------------------------------


@pytest.fixture
async def embedder(router: MemoryRouter) -> AsyncIterator[MemoryRouter]:
    async def script(play: Play) -> None:
        await play.start()
        await play.complete(vectors=tuple((3.0, 4.0, 12.0) for _ in play.asked.body.inputs), times=TIMES)

    router.script = script
    yield router


async def test_texts_are_embedded_in_their_order(client: ollama.AsyncClient, embedder: MemoryRouter) -> None:
    made = await client.embed("qwen3", ["one", "two"])
    assert [list(vector) for vector in made.embeddings] == [[3.0, 4.0, 12.0]] * 2
    assert (made.total_duration, made.load_duration, made.prompt_eval_count) == (2_750_000_000, 250_000_000, 12)
    assert (embedder.last.asked.kind, embedder.last.asked.body.inputs) == ("embedding", ("one", "two"))
    cut = await client.embed("qwen3", "one", dimensions=2)
    assert [list(vector) for vector in cut.embeddings] == [[0.6, 0.8]]
    assert (await client.embed("qwen3", "")).embeddings == []


async def test_the_former_path_embeds_one_text(client: ollama.AsyncClient, embedder: MemoryRouter) -> None:
    assert list((await client.embeddings("qwen3", "one")).embedding) == [3.0, 4.0, 12.0]
    assert list((await client.embeddings("qwen3", "")).embedding) == []


# -- errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/api/chat", {"messages": HI}, 400, "model is required"),
        ("/api/chat", {"model": "nope", "messages": HI}, 404, "model 'nope' not found"),
        ("/api/generate", {"model": "nope", "prompt": "Hi"}, 404, "model 'nope' not found"),
        ("/api/embed", {"model": "nope", "input": "Hi"}, 404, "model 'nope' not found"),
        ("/api/chat", {"model": "qwen3", "messages": [{"content": "Hi"}]}, 400, "messages[0].role"),
        ("/api/chat", {"model": "qwen3", "messages": [{"role": "user", "images": ["#"]}]}, 400, "illegal base64"),
        ("/api/chat", {"model": "qwen3", "messages": HI, "options": {"temperature": "hot"}}, 400, "options.temperature"),
        ("/api/chat", {"model": "qwen3", "messages": HI, "format": "yaml"}, 400, "invalid format"),
        ("/api/generate", {"model": "qwen3", "prompt": "Hi", "context": [1, 2]}, 400, "context"),
        ("/api/embed", {"model": "qwen3", "input": [1]}, 400, "input"),
    ],
)  # fmt: skip
async def test_what_cannot_be_is_refused_in_ollamas_form(
    wire: httpx.AsyncClient, path: str, body: dict[str, Any], status: int, words: str
) -> None:
    reply = await wire.post(path, json=body)
    assert reply.status_code == status
    assert words in reply.json()["error"]


async def test_a_full_queue_is_busy_with_its_numbers(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.refusal = Busy("200 tasks of yours wait", retry_after_s=12.2, numbers={"waiting": 200})
    reply = await wire.post("/api/chat", json={"model": "qwen3", "messages": HI})
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "13")
    assert reply.json() == {"error": "200 tasks of yours wait", "numbers": {"waiting": 200}}


@pytest.mark.parametrize(("failure", "status"), [("rejected", 400), ("busy", 503), ("oom", 502)])
@pytest.mark.parametrize("stream", [True, False])
async def test_an_error_before_the_first_token_has_its_own_status(
    wire: httpx.AsyncClient, router: MemoryRouter, failure: FailureClass, status: int, stream: bool
) -> None:
    async def script(play: Play) -> None:
        await play.start()
        await play.fail(failure, "for a reason")

    router.script = script
    reply = await wire.post("/api/chat", json={"model": "qwen3", "messages": HI, "stream": stream})
    assert reply.status_code == status
    assert "for a reason" in reply.json()["error"]


async def test_an_error_after_the_first_token_is_the_last_line(
    client: ollama.AsyncClient, router: MemoryRouter
) -> None:
    async def script(play: Play) -> None:
        await play.start()
        await play.say("Hel")
        await play.fail("disconnect", "the machine is gone")

    router.script = script
    stream = await client.chat("qwen3", HI, stream=True)
    assert (await anext(stream)).message.content == "Hel"
    with pytest.raises(ollama.ResponseError, match="the machine is gone"):
        await anext(stream)


async def test_an_answer_that_begins_again_is_an_error(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    async def script(play: Play) -> None:
        await play.start()
        await play.say("Hel")
        await play.restart()

    router.script = script
    lines = lines_of(await wire.post("/api/chat", json={"model": "qwen3", "messages": HI}))
    assert "send it again" in lines[-1]["error"]


@pytest.mark.parametrize("timing", [Timing(hold_s=0.01, keep_alive_s=0.02)])
async def test_a_long_silence_is_filled_with_lines_that_say_nothing(
    wire: httpx.AsyncClient, held: MemoryRouter
) -> None:
    async with wire.stream("POST", "/api/chat", json={"model": "qwen3", "messages": HI}) as reply:
        lines = reply.aiter_lines()
        first = [msgspec.json.decode(await anext(lines)) for _ in range(2)]
        assert [(line["message"]["content"], line["done"]) for line in first] == [("", False)] * 2
        await held.last.start()
        await held.last.say("Hello")
        await held.last.complete()
        rest = [msgspec.json.decode(line) async for line in lines]
    assert "".join(line["message"]["content"] for line in rest) == "Hello"
    assert rest[-1]["done"]


async def test_whoever_closes_a_stream_leaves_the_task(wire: httpx.AsyncClient, held: MemoryRouter) -> None:
    async def say() -> None:
        await held.submitted()
        await held.last.start()
        await held.last.say("Hello")

    saying = asyncio.ensure_future(say())
    async with wire.stream("POST", "/api/chat", json={"model": "qwen3", "messages": HI}) as reply:
        await anext(reply.aiter_lines())
    await saying
    await held.last.abandoned()
