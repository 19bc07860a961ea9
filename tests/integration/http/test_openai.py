"""The OpenAI-compatible surface, as docs/http/openai.md promises it and as the real clients see it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import openai
import pytest

from schemas.errors import BusError
from schemas.events import FailureClass, Tokens
from services.router.http.app import create_app
from services.router.http.live import Timing
from services.router.http.serving import serving
from services.router.port import Busy
from support.eventually import PATIENCE_S
from support.router_port import MemoryRouter, Play

HI = [{"role": "user", "content": "Hi"}]
SHORT = Timing(hold_s=0.02, keep_alive_s=0.02)
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}


@pytest.fixture
async def client(url: str) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="secret", max_retries=0, timeout=PATIENCE_S) as client:
        yield client


@pytest.fixture
def held(router: MemoryRouter) -> MemoryRouter:
    """The test plays the task itself."""
    router.script = None
    return router


def chunks_of(text: str) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in text.split("\n\n") if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [msgspec.json.decode(line) for line in lines[:-1]]


async def test_the_models_are_auto_and_what_the_fleet_holds(client: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in client.models.list()] == ["auto", "qwen3", "smollm2:135m"]


async def test_a_whole_answer_with_usage_and_headers(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    raw = await client.chat.completions.with_raw_response.create(model="auto", messages=HI)  # type: ignore[arg-type]
    answer = raw.parse()
    assert answer.choices[0].message.content == "Hello world"
    assert (answer.choices[0].finish_reason, answer.model) == ("stop", "qwen3")
    assert answer.usage is not None
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (12, 3, 15)
    assert {name: value for name, value in raw.headers.items() if name.startswith("x-headrace")} == {
        "x-headrace-task": "t1",
        "x-headrace-domain": "general",
        "x-headrace-model": "qwen3",
        "x-headrace-worker": "desktop",
        "x-headrace-reason": "least predicted completion",
    }
    assert router.last.asked.client == "key-2bb80d537b1d"


async def test_a_streamed_answer_with_usage_and_who_answered(client: openai.AsyncOpenAI) -> None:
    stream = await client.chat.completions.create(
        model="qwen3",
        messages=HI,
        stream=True,
        stream_options={"include_usage": True},  # type: ignore[arg-type]
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "Hello world"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-2].model_extra is not None
    assert chunks[-2].model_extra["headrace"]["worker_name"] == "desktop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 15
    assert {chunk.id for chunk in chunks} == {"chatcmpl-t1"}


async def test_usage_comes_only_when_asked_for(http: httpx.AsyncClient) -> None:
    reply = await http.post("/v1/chat/completions", json={"messages": HI, "stream": True})
    assert all("usage" not in chunk for chunk in chunks_of(reply.text))


async def test_unknown_counts_are_null_and_never_zero(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    async def uncounted(play: Play) -> None:
        await play.start()
        await play.complete("Hi", tokens=Tokens())

    router.script = uncounted
    assert (await http.post("/v1/chat/completions", json={"messages": HI})).json()["usage"] is None


async def test_what_the_router_does_not_read_reaches_the_backend(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    extra = {
        "tools": [{"type": "function"}],
        "stop": ["x"],
        "response_format": {"type": "json_object"},
        "think": True,
        "top_k": 4,
    }
    body = {"messages": HI, "model": "qwen3", "max_tokens": 9, "temperature": 0, "top_p": 1, "seed": -1, **extra}
    own = {
        "headrace": {
            "domain": "code",
            "worker": "laptop",
            "urgency": "batch",
            "slider": 0,
            "route": "fast",
            "deadline_s": 9,
        }
    }
    await http.post(
        "/v1/chat/completions",
        json={**body, **own, "stream": None, "prompt_cache_key": "k"},
        headers={"x-openwebui-chat-id": "s9"},
    )
    asked = router.last.asked
    assert asked.body.extra == extra
    assert list(asked.body.messages) == HI
    options = asked.options
    assert (options.max_tokens, options.temperature, options.top_p, options.seed, options.slider) == (9, 0, 1, -1, 0)
    assert (asked.wants.model, asked.wants.worker, asked.wants.route) == ("qwen3", "w-2", "fast")
    assert (asked.session, asked.domain, asked.urgency, asked.deadline_s) == ("s9", "code", "batch", 9)


async def test_tool_calls_whole_and_streamed(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    async def calls(play: Play) -> None:
        await play.start()
        await play.say(tool_calls=(CALL,))
        await play.say(tool_calls=({**CALL, "id": "c2"},))
        await play.complete("", tool_calls=(CALL, {**CALL, "id": "c2"}))

    router.script = calls
    whole = await client.chat.completions.create(model="qwen3", messages=HI)  # type: ignore[arg-type]
    assert whole.choices[0].finish_reason == "tool_calls"
    assert whole.choices[0].message.content is None
    assert [call.id for call in whole.choices[0].message.tool_calls or ()] == ["c1", "c2"]
    stream = await client.chat.completions.create(model="qwen3", messages=HI, stream=True)  # type: ignore[arg-type]
    chunks = [chunk async for chunk in stream]
    deltas = [delta for chunk in chunks for delta in chunk.choices[0].delta.tool_calls or ()]
    assert [(delta.index, delta.id) for delta in deltas] == [(0, "c1"), (1, "c2")]
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


async def test_thinking_is_kept_apart(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    async def thinks(play: Play) -> None:
        await play.start()
        await play.say(thinking="hm")
        await play.say("42")
        await play.complete(thinking="hm")

    router.script = thinks
    whole = (await http.post("/v1/chat/completions", json={"messages": HI})).json()
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": "42", "reasoning_content": "hm"}
    streamed = chunks_of((await http.post("/v1/chat/completions", json={"messages": HI, "stream": True})).text)
    assert [chunk["choices"][0]["delta"] for chunk in streamed] == [
        {"role": "assistant", "reasoning_content": "hm"},
        {"content": "42"},
        {},
    ]


async def test_text_that_was_missed_on_the_way_comes_with_the_end(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    async def loses(play: Play) -> None:
        await play.start()
        await play.say("Hel")
        await play.complete("Hello")

    router.script = loses
    streamed = chunks_of((await http.post("/v1/chat/completions", json={"messages": HI, "stream": True})).text)
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in streamed) == "Hello"


async def test_an_empty_answer_is_still_an_answer(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    async def empty(play: Play) -> None:
        await play.start()
        await play.complete("", outcome="empty", finish_reason="length")

    router.script = empty
    first, last = chunks_of((await http.post("/v1/chat/completions", json={"messages": HI, "stream": True})).text)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert (last["choices"][0]["finish_reason"], last["headrace"]["outcome"]) == ("length", "empty")


# Headers: with the first piece, or after the hold.


async def test_headers_wait_for_the_first_piece_and_name_the_worker(
    wire: httpx.AsyncClient, held: MemoryRouter
) -> None:
    reply, end = await opened(wire, held)
    await held.last.start("w-2", "smollm2:135m", reason="速い")
    await held.last.say("Hi")
    headers = (await reply).headers
    assert (headers["x-headrace-worker"], headers["x-headrace-model"]) == ("laptop", "smollm2:135m")
    assert headers["x-headrace-reason"] == "%E9%80%9F%E3%81%84"
    assert "x-headrace-expected-worker" not in headers
    await end()


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/chat/completions", {}), ("/v1/messages", {"max_tokens": 9}), ("/v1/responses", {})]
)
async def test_what_a_machine_refuses_at_once_has_its_own_status_in_a_stream_too(
    wire: httpx.AsyncClient, router: MemoryRouter, path: str, body: dict[str, Any]
) -> None:
    """Agents learn by a 400 that their conversation has become too long, and shorten it."""

    async def too_long(play: Play) -> None:
        await play.start()
        await play.fail("rejected", "HTTP 400: the request exceeds the available context size")

    router.script = too_long
    asked = {"input": "Hi"} if path == "/v1/responses" else {"messages": HI}
    reply = await wire.post(path, json={"model": "qwen3", **asked, **body, "stream": True})
    assert (reply.status_code, reply.headers["content-type"]) == (400, "application/json")
    assert "exceeds the available context size" in reply.json()["error"]["message"]


@pytest.mark.parametrize("timing", [SHORT])
async def test_after_the_hold_they_name_the_expected_worker(wire: httpx.AsyncClient, held: MemoryRouter) -> None:
    reply, end = await opened(wire, held)
    response = await reply
    assert response.headers["x-headrace-expected-worker"] == "desktop"
    assert "x-headrace-worker" not in response.headers
    lines = response.aiter_lines()
    while await anext(lines) != ": keep-alive":
        pass
    await held.last.start("w-2")
    await held.last.say("late")
    await held.last.complete()
    text = "\n".join([line async for line in lines])
    assert '"worker_name":"laptop"' in text
    await end()


@pytest.mark.parametrize("timing", [SHORT])
async def test_the_real_client_reads_over_the_comments(client: openai.AsyncOpenAI, held: MemoryRouter) -> None:
    stream = await client.chat.completions.create(model="auto", messages=HI, stream=True)  # type: ignore[arg-type]
    await held.last.start()
    await held.last.say("Hi")
    await held.last.complete()
    assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "Hi"


async def opened(wire: httpx.AsyncClient, router: MemoryRouter) -> tuple[asyncio.Task[httpx.Response], Any]:
    """A stream whose headers are awaited, once its task is submitted; and what closes it."""
    stack = contextlib.AsyncExitStack()
    request = wire.stream("POST", "/v1/chat/completions", json={"messages": HI, "stream": True})
    reply = asyncio.create_task(stack.enter_async_context(request))
    await router.submitted()
    return reply, stack.aclose


# Errors, in OpenAI's form.


async def test_an_unknown_model_is_404_with_the_nearest_names(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="nearest: qwen3") as caught:
        await client.chat.completions.create(model="qwen33", messages=HI)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.param, caught.value.type) == (
        "model_not_found",
        "model",
        "invalid_request_error",
    )


async def test_busy_is_429_or_503_with_retry_after(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    router.refusal = Busy("200 tasks of this client wait", retry_after_s=3)
    with pytest.raises(openai.RateLimitError) as caught:
        await client.chat.completions.create(model="auto", messages=HI)  # type: ignore[arg-type]
    assert (caught.value.response.headers["retry-after"], caught.value.type) == ("3", "rate_limit_error")
    for refusal in (Busy("asleep", retry_after_s=3, status=503), BusError("no answer")):
        router.refusal = refusal
        with pytest.raises(openai.InternalServerError) as failed:
            await client.chat.completions.create(model="auto", messages=HI, stream=True)  # type: ignore[arg-type]
        assert (failed.value.status_code, failed.value.type) == (503, "server_error")
        assert int(failed.value.response.headers["retry-after"]) >= 1


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        ("rejected", 400, "context_length_exceeded"),
        ("timeout", 504, "timeout"),
        ("not_started", 503, "not_started"),
        ("oom", 502, "oom"),
    ],
)
async def test_a_failure_before_the_headers_has_its_status(
    http: httpx.AsyncClient, router: MemoryRouter, failure: FailureClass, status: int, code: str, stream: bool
) -> None:
    router.script = lambda play: play.fail(failure, "exceed_context_size: 9000 of 4096")
    reply = await http.post("/v1/chat/completions", json={"messages": HI, "stream": stream})
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], set(error)) == (status, code, {"message", "type", "param", "code"})
    assert "exceed_context_size" in error["message"]
    assert reply.headers["x-headrace-task"] == "t1"


@pytest.mark.parametrize("stream", [True, False])
async def test_dead_and_cancelled_are_told_apart(http: httpx.AsyncClient, router: MemoryRouter, stream: bool) -> None:
    for script, status, code in ((Play.die, 502, "dead"), (lambda play: play.cancel("by hand"), 409, "cancelled")):
        router.script = script
        reply = await http.post("/v1/chat/completions", json={"messages": HI, "stream": stream})
        assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)


async def test_a_failure_after_text_is_the_last_chunk(client: openai.AsyncOpenAI, router: MemoryRouter) -> None:
    async def breaks(play: Play) -> None:
        await play.start()
        await play.say("Hel")
        await play.fail("disconnect", "the backend hung up")

    router.script = breaks
    stream = await client.chat.completions.create(model="auto", messages=HI, stream=True)  # type: ignore[arg-type]
    assert (await anext(stream)).choices[0].delta.content == "Hel"
    with pytest.raises(openai.APIError, match="the backend hung up"):
        await anext(stream)


async def test_a_restart_after_text_ends_the_stream_with_an_error(
    client: openai.AsyncOpenAI, held: MemoryRouter
) -> None:
    async def restarts(play: Play) -> None:
        await play.start()
        await play.say("Hel")
        await play.restart()

    held.script = restarts
    stream = await client.chat.completions.create(model="auto", messages=HI, stream=True)  # type: ignore[arg-type]
    await anext(stream)
    with pytest.raises(openai.APIError, match="cannot take text back") as caught:
        await anext(stream)
    assert caught.value.code == "restarted"
    await held.last.abandoned()


async def test_a_restart_before_any_text_goes_unnoticed(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    async def restarts(play: Play) -> None:
        await play.start()
        await play.restart()
        await play.start("w-2", "smollm2:135m")
        await play.say("Hello")
        await play.complete()

    router.script = restarts
    streamed = chunks_of((await http.post("/v1/chat/completions", json={"messages": HI, "stream": True})).text)
    assert {chunk["model"] for chunk in streamed} == {"smollm2:135m"}
    assert streamed[-1]["headrace"]["worker_name"] == "laptop"


async def test_a_whole_answer_survives_a_restart(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    async def restarts(play: Play) -> None:
        await play.start()
        await play.say("Hel")
        await play.restart()
        await play.start("w-2")
        await play.say("Hello")
        await play.complete()

    router.script = restarts
    reply = await http.post("/v1/chat/completions", json={"messages": HI})
    assert reply.json()["choices"][0]["message"]["content"] == "Hello"
    assert reply.headers["x-headrace-worker"] == "laptop"


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (b"nonsense", None),
        (b"{}", "messages"),
        (b'{"messages": []}', "messages"),
        (b'{"messages": [{"role": 1}]}', "messages[0].role"),
        (b'{"messages": [{"role": "user", "content": "a"}], "model": 3}', "model"),
        (b'{"messages": [{"role": "user", "content": "a"}], "tools": 7}', "tools"),
        (b'{"messages": [{"role": "user", "content": "a"}], "n": 17}', "n"),
        (b'{"messages": [{"role": "user", "content": "a"}], "max_tokens": 0}', "max_tokens"),
        (b'{"messages": [{"role": "user", "content": "a"}], "stream": "yes"}', "stream"),
        (
            b'{"messages": [{"role": "user", "content": "a"}], "stream_options": {"include_usage": 3}}',
            "stream_options.include_usage",
        ),
        (b'{"messages": [{"role": "user", "content": "a"}], "headrace": {"worker": "nas"}}', "headrace.worker"),
        (b'{"messages": [{"role": "user", "content": "a"}], "headrace": {"wroker": "nas"}}', "headrace.wroker"),
    ],
)
async def test_a_bad_request_names_its_parameter(http: httpx.AsyncClient, body: bytes, param: str | None) -> None:
    reply = await http.post("/v1/chat/completions", content=body)
    error = reply.json()["error"]
    assert (reply.status_code, error["type"], error["param"]) == (400, "invalid_request_error", param)


async def test_paths_methods_and_sizes_fail_in_the_same_form(http: httpx.AsyncClient) -> None:
    for reply, status, code in (
        (await http.get("/v1/nowhere"), 404, "not_found"),
        (await http.get("/v1/chat/completions"), 405, "method_not_allowed"),
        (
            await http.post("/v1/chat/completions", content=b"{}", headers={"content-length": "99999999999"}),
            413,
            "too_large",
        ),
    ):
        assert (reply.status_code, reply.json()["error"]["code"], reply.json()["error"]["type"]) == (
            status,
            code,
            "invalid_request_error",
        )


# Goodbyes.


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_leaves_while_it_waits_is_noticed(
    wire: httpx.AsyncClient, held: MemoryRouter, stream: bool
) -> None:
    asking = asyncio.create_task(wire.post("/v1/chat/completions", json={"messages": HI, "stream": stream}))
    await held.submitted()
    assert not held.last.is_abandoned
    asking.cancel()
    await asyncio.wait({asking})
    await held.last.abandoned()


async def test_a_client_that_leaves_in_mid_answer_is_noticed(client: openai.AsyncOpenAI, held: MemoryRouter) -> None:
    async def begins(play: Play) -> None:
        await play.start()
        await play.say("Hel")

    held.script = begins
    stream = await client.chat.completions.create(model="auto", messages=HI, stream=True)  # type: ignore[arg-type]
    await anext(stream)
    await stream.close()
    await held.last.abandoned()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_router_that_stops_says_so(held: MemoryRouter, stream: bool) -> None:
    async with contextlib.AsyncExitStack() as running:
        url = await running.enter_async_context(serving(create_app(held, timing=SHORT), "127.0.0.1", 0, drain_s=0))
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE_S) as wire:
            asking = asyncio.create_task(wire.post("/v1/chat/completions", json={"messages": HI, "stream": stream}))
            await held.submitted()
            await held.last.start()
            await held.last.followed()
            await running.aclose()
            reply = await asking
    assert '"code":"stopping"' in reply.text
    assert reply.status_code == (200 if stream else 503)
