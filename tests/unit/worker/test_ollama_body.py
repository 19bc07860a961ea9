from __future__ import annotations

from typing import Any

import pytest

from schemas.errors import BackendError
from schemas.events import Options
from schemas.work import Body
from services.worker.backends.ollama_body import chat_body, embed_body
from services.worker.backends.port import MOST_TOKENS, BackendRequest


def request(context: int | None = None, options: Options = Options(), **body: Any) -> BackendRequest:  # noqa: B008
    return BackendRequest(model="m", body=Body(**body), options=options, context=context)


def test_case_27_no_clients_load_option_reaches_ollama() -> None:
    extra = {"options": {"num_ctx": 9, "num_gpu": 1, "mirostat": 2}, "num_thread": 3, "num_ctx": 5}
    _, body = chat_body(request(messages=({"role": "user", "content": "Hi"},), extra=extra))
    assert body["options"] == {"mirostat": 2, "num_predict": MOST_TOKENS}
    assert "num_ctx" not in body and "num_thread" not in body


def test_case_27_the_window_that_is_set_goes_with_each_kind_of_request() -> None:
    chat = chat_body(request(8192, messages=({"role": "user", "content": "Hi"},)))[1]
    prompt = chat_body(request(8192, prompt="Hi"))[1]
    assert [body["options"]["num_ctx"] for body in (chat, prompt, embed_body(request(8192), ["a"]))] == [8192] * 3


def test_a_prompt_keeps_what_only_a_prompt_has() -> None:
    path, body = chat_body(request(prompt="def f(", extra={"raw": True, "suffix": "return x"}))
    assert (path, body["prompt"], body["raw"], body["suffix"]) == ("/api/generate", "def f(", True, "return x")


def test_nothing_is_cut_in_silence_unless_the_client_says_so() -> None:
    cut = [chat_body(request(prompt="x", extra=extra))[1]["truncate"] for extra in ({}, {"truncate": True})]
    assert cut == [False, True]
    assert embed_body(request(extra={"truncate": True, "dimensions": 64}), ["a"]) == {
        "model": "m", "input": ["a"], "truncate": True, "dimensions": 64,
    }  # fmt: skip


def test_thinking_and_results_come_back_into_ollamas_words() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    messages = (
        {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
    )
    _, body = chat_body(request(messages=messages))
    asked, result = body["messages"]
    assert (asked["content"], asked["thinking"]) == ("", "hm")
    assert asked["tool_calls"][0]["function"]["arguments"] == {"a": 1}
    assert (result["tool_name"], result["content"]) == ("add", "2")


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": [{"type": "image_url"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": "iVBO"}]},
        {"role": "assistant", "tool_calls": [{"id": "c"}]},
        {"role": "assistant", "tool_calls": ["f"]},
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": '{"a":'}}]},
        {"role": "assistant", "tool_calls": 5},
    ],
)
def test_a_message_that_is_none_is_the_requests_fault(message: dict[str, Any]) -> None:
    with pytest.raises(BackendError) as refused:
        chat_body(request(messages=(message,)))
    assert (refused.value.failure, refused.value.retryable) == ("rejected", False)


def of_chat(**extra: Any) -> dict[str, Any]:
    return chat_body(request(messages=({"role": "user", "content": "Hi"},), extra=extra))[1]


def test_what_openai_says_in_another_form_is_said_in_ollamas() -> None:
    assert of_chat(stop="END")["options"]["stop"] == ["END"]
    assert of_chat(stop=["a", "b"])["options"]["stop"] == ["a", "b"]
    plain = chat_body(request(prompt="Hi", extra={"logprobs": 2}))[1]
    assert (plain["logprobs"], plain["top_logprobs"]) == (True, 2)
    assert of_chat(logprobs=True, top_logprobs=3)["top_logprobs"] == 3


def test_a_null_is_nothing() -> None:
    names = ("stop", "response_format", "tools", "logprobs", "format", "top_k", "tool_choice", "truncate")
    assert of_chat(**dict.fromkeys(names)) == of_chat()


def test_what_must_not_be_called_is_not_shown() -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
    assert "tools" not in of_chat(tools=tools, tool_choice="none")
    assert of_chat(tools=tools, tool_choice={"type": "function", "function": {"name": "g"}})["tools"] == tools[1:]
    for choice in ("auto", "required", {"type": "function", "function": {"name": "h"}}):
        assert of_chat(tools=tools, tool_choice=choice)["tools"] == tools


@pytest.mark.parametrize("kind", ["input_audio", "file", "video_url"])
def test_a_part_that_ollama_cannot_read_is_refused_and_never_left_out(kind: str) -> None:
    said = [{"type": "text", "text": "What is it?"}, {"type": kind, kind: {}}]
    with pytest.raises(BackendError, match=kind) as refused:
        chat_body(request(messages=({"role": "user", "content": said},)))
    assert (refused.value.failure, refused.value.retryable) == ("rejected", True)
    (thought,) = chat_body(request(messages=({"role": "assistant", "content": [{"type": "thinking"}, said[0]]},)))[1][
        "messages"
    ]
    assert thought["content"] == "What is it?"


def test_two_texts_are_two_lines() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    (message,) = chat_body(request(messages=({"role": "user", "content": parts},)))[1]["messages"]
    assert message["content"] == "a\nb"


def test_images_are_bare_base64_again() -> None:
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
    content = [{"type": "text", "text": "Look"}, part]
    (message,) = chat_body(request(messages=({"role": "user", "content": content},)))[1]["messages"]
    assert (message["content"], message["images"]) == ("Look", ["iVBO"])


def test_llama_cpps_form_of_a_schema_is_one_here_too() -> None:
    hi, schema = ({"role": "user", "content": "Hi"},), {"type": "object"}
    forms = ({"type": "json_object", "schema": schema}, {"type": "json_object"}, {"type": "text"})
    bodies = [chat_body(request(messages=hi, extra={"response_format": form}))[1] for form in forms]
    assert [body["format"] for body in bodies] == [schema, "json", ""]


def test_a_result_that_names_its_tool_itself_is_known_by_it() -> None:
    result = {"role": "tool", "name": "add", "tool_call_id": "gone", "content": "3"}
    _, body = chat_body(request(messages=({"role": "user", "content": "Hi"}, result)))
    assert body["messages"][1]["tool_name"] == "add"
