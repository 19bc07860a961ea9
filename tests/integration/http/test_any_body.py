"""Whatever JSON arrives, nobody sees a 5xx that docs/http.md does not name, and every error has its form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from services.router import intake
from services.router.domains import compile_rules
from services.router.http.app import create_app
from services.router.port import NewTask, Submitted
from support.router_port import MemoryRouter

ANY_TEXT = st.text(max_size=8)
ROLE = st.sampled_from(["user", "assistant", "system"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    max_leaves=8,
)
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]) | ANY_JSON, "content": ANY_TEXT | ANY_JSON}
)
CONSTRAINTS = st.dictionaries(
    st.sampled_from(
        ["worker", "capability", "context", "max_tokens", "deadline_s", "domain", "urgency", "slider", "route"]
    ),
    ANY_JSON | st.sampled_from(["laptop", "batch", 1, 0.5]),
    max_size=4,
)
NATIVE = st.fixed_dictionaries(
    {},
    optional={
        "prompt": ANY_JSON | ANY_TEXT,
        "messages": st.lists(MESSAGE, max_size=2) | ANY_JSON,
        "model": st.sampled_from(["auto", "qwen3", "qwen4"]) | ANY_JSON,
        "client": ANY_JSON | ANY_TEXT,
        "session": ANY_JSON,
        "constraints": CONSTRAINTS | ANY_JSON,
        "options": st.dictionaries(st.sampled_from(["temperature", "top_p", "seed"]), ANY_JSON) | ANY_JSON,
        "extra": ANY_JSON | st.fixed_dictionaries({"tools": ANY_JSON}),
    },
)
OPENAI = st.fixed_dictionaries(
    {"messages": st.lists(MESSAGE, min_size=1, max_size=2) | ANY_JSON},
    optional={
        "model": st.sampled_from(["auto", "qwen3", "qwen4"]) | ANY_JSON,
        "stream": st.booleans() | ANY_JSON,
        "stream_options": ANY_JSON,
        "max_tokens": ANY_JSON,
        "temperature": ANY_JSON,
        "seed": ANY_JSON,
        "n": ANY_JSON,
        "prompt_cache_key": ANY_JSON,
        "headrace": CONSTRAINTS | ANY_JSON,
        "tools": ANY_JSON | st.lists(ANY_JSON, max_size=2),
    },
)
NAMES = st.lists(st.sampled_from(["qwen3", "smollm2", "desktop", "w-2"]) | ANY_JSON, max_size=2)
COMPARE = st.fixed_dictionaries(
    {"prompt": st.just("hi") | ANY_JSON},
    optional={
        "messages": st.lists(MESSAGE, max_size=2) | ANY_JSON,
        "models": NAMES | ANY_JSON,
        "workers": NAMES | ANY_JSON,
        "judge": st.booleans() | st.just("qwen3") | ANY_JSON,
        "constraints": CONSTRAINTS | ANY_JSON,
        "options": ANY_JSON,
        "extra": ANY_JSON,
        "session": ANY_JSON,
    },
)
FEEDBACK = st.fixed_dictionaries(
    {},
    optional={
        "task": st.just("t1") | ANY_JSON,
        "message": ANY_JSON,
        "compare": ANY_JSON | ANY_TEXT,
        "rating": st.sampled_from([-1, 0, 1]) | ANY_JSON,
        "value": st.floats(0, 1) | ANY_JSON,
        "pick": st.integers(1, 3) | ANY_JSON,
        "comment": ANY_JSON | ANY_TEXT,
        "client": ANY_JSON | ANY_TEXT,
    },
)
PART = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["text", "input_text", "input_image", "image", "tool_use", "tool_result", "thinking"])
        | ANY_JSON
    },
    optional=dict.fromkeys(("text", "source", "content", "id", "name", "input", "tool_use_id", "image_url"), ANY_JSON),
)
BLOCKS = st.lists(PART | ANY_JSON, max_size=2) | ANY_JSON
ITEM = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "function_call", "function_call_output", "reasoning", "custom_tool_call"])},
    optional={"role": st.sampled_from(["user", "assistant"]) | ANY_JSON, "content": BLOCKS}
    | dict.fromkeys(("call_id", "name", "arguments", "input", "output", "summary"), ANY_TEXT | ANY_JSON),
)
# Mostly nothing, so that what lies deeper is reached.
SELDOM = st.none() | st.none() | st.none() | ANY_JSON
FURTHER = dict.fromkeys(("model", "tools", "tool_choice", "stream", "headrace", "temperature", "metadata"), SELDOM)
SURFACES = {
    "/v1/responses": st.fixed_dictionaries(
        {"input": st.lists(ITEM, max_size=3) | ANY_TEXT | ANY_JSON},
        optional=FURTHER
        | dict.fromkeys(("instructions", "text", "reasoning", "previous_response_id", "include", "prompt"), SELDOM),
    ),
    "/v1/messages": st.fixed_dictionaries(
        {
            "max_tokens": st.just(9),
            "messages": st.lists(st.fixed_dictionaries({"role": ROLE, "content": BLOCKS | ANY_TEXT}), max_size=3)
            | ANY_JSON,
        },
        optional=FURTHER | dict.fromkeys(("system", "thinking", "output_config", "stop_sequences", "top_k"), SELDOM),
    ),
    "/v1/messages/count_tokens": st.fixed_dictionaries(
        {"messages": st.lists(st.fixed_dictionaries({"role": ROLE, "content": BLOCKS}), max_size=2) | ANY_JSON},
        optional={"system": BLOCKS, "tools": ANY_JSON},
    ),
    "/v1/completions": st.fixed_dictionaries(
        {"prompt": ANY_TEXT | st.lists(ANY_TEXT | ANY_JSON, max_size=3) | ANY_JSON},
        optional=dict.fromkeys(("n", "stream", "seed", "logprobs", "max_tokens", "model"), SELDOM),
    ),
    "/v1/embeddings": st.fixed_dictionaries(
        {"input": ANY_TEXT | st.lists(ANY_TEXT | ANY_JSON, max_size=3) | ANY_JSON},
        optional=dict.fromkeys(("model", "encoding_format", "dimensions", "user"), SELDOM),
    ),
}
RULES = compile_rules({})
SHARED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
PATIENT = settings(max_examples=150, deadline=None, suppress_health_check=SHARED)


class ReadingRouter(MemoryRouter):
    """Also reads each request as the real router does: what a surface lets through must not break it."""

    async def submit(self, task: NewTask) -> Submitted:
        intake.read(task, 0, RULES, self.view)
        return await super().submit(task)


Send = Callable[..., httpx.Response]
"""Method and path, and what else ``httpx`` takes."""


@pytest.fixture
def send() -> Iterator[Send]:
    """One application for all examples of a test, for it takes ten times as long to make as to ask."""
    transport = httpx.ASGITransport(app=create_app(ReadingRouter()), raise_app_exceptions=False)

    async def sent(method: str, path: str, **given: Any) -> httpx.Response:
        async with httpx.AsyncClient(transport=transport, base_url="http://router") as client:
            return await client.request(method, path, **given)

    with asyncio.Runner() as runner:
        yield lambda *asked, **given: runner.run(sent(*asked, **given))


def assert_documented(reply: httpx.Response, codes: set[Any], *, openai: bool) -> None:
    assert reply.status_code in {200, 202, 400, 404}, reply.text
    if reply.status_code < 400:
        return
    error = reply.json()["error"]
    assert set(error) == (
        {"message", "type", "param", "code"} if openai else {"code", "message", "field", "nearest", "retry_after_s"}
    )
    assert error["code"] in codes
    assert error["message"]


@PATIENT
@given(ANY_JSON | NATIVE)
def test_any_json_to_route_is_accepted_or_refused_by_name(send: Send, body: Any) -> None:
    assert_documented(
        send("POST", "/route", content=msgspec.json.encode(body)), {"invalid_request", "unknown_model"}, openai=False
    )


@PATIENT
@given(ANY_JSON | OPENAI)
def test_any_json_to_chat_is_answered_or_refused_by_name(send: Send, body: Any) -> None:
    reply = send("POST", "/v1/chat/completions", content=msgspec.json.encode(body))
    assert_documented(reply, {"invalid_request", "model_not_found"}, openai=True)


@settings(max_examples=400, deadline=None, suppress_health_check=SHARED)
@given(st.data())
def test_any_json_to_the_other_surfaces_is_answered_or_refused_in_their_form(send: Send, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(SURFACES)))
    reply = send("POST", path, content=msgspec.json.encode(data.draw(SURFACES[path] | ANY_JSON)))
    if not path.startswith("/v1/messages"):
        assert_documented(reply, {"invalid_request", "model_not_found"}, openai=True)
        return
    assert reply.status_code in {200, 400, 404}, reply.text
    if reply.status_code >= 400:
        assert reply.json()["type"] == "error"
        assert set(reply.json()["error"]) == {"type", "message"}


@PATIENT
@given(ANY_JSON | FEEDBACK)
def test_any_json_to_feedback_is_answered_or_refused_by_name(send: Send, body: Any) -> None:
    assert_documented(
        send("POST", "/feedback", content=msgspec.json.encode(body)), {"invalid_request", "unknown_task"}, openai=False
    )


@PATIENT
@given(ANY_JSON | COMPARE)
def test_any_json_to_compare_is_answered_or_refused_by_name(send: Send, body: Any) -> None:
    reply = send("POST", "/compare", content=msgspec.json.encode(body))
    if reply.status_code == 503:  # nobody may answer this now, which is true of what asks for too much
        assert reply.json()["error"]["code"] == "busy"
        return
    if reply.status_code == 200:
        assert "\nevent: done\n" in reply.text, reply.text
        return
    assert_documented(reply, {"invalid_request", "unknown_model"}, openai=False)


@PATIENT
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_refused_by_name(send: Send, body: bytes) -> None:
    for path, openai in (("/route", False), ("/feedback", False), ("/compare", False), ("/v1/chat/completions", True)):
        assert_documented(send("POST", path, content=body), {"invalid_request"}, openai=openai)


@settings(max_examples=80, deadline=None, suppress_health_check=SHARED)
@given(st.dictionaries(st.sampled_from(["prompt", "model", "worker", "context", "slider", "urgency", "x"]), ANY_TEXT))
def test_any_query_is_answered_or_refused_by_name(send: Send, query: dict[str, str]) -> None:
    assert_documented(send("GET", "/route/preview", params=query), {"invalid_request", "unknown_model"}, openai=False)
