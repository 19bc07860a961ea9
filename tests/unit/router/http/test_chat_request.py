from __future__ import annotations

from typing import Any

import pytest

from services.router.fleet import Fleet
from services.router.http.chat_request import chat_task
from services.router.http.reading import BadRequest

HI: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}


def test_a_bare_request_leaves_everything_open() -> None:
    request, task = chat_task(HI, {}, Fleet())
    assert (task.wants.model, task.options.max_tokens, task.body.extra, task.client) == (None, None, {}, "local")
    assert not request.stream
    assert not request.wants_usage


def test_nulls_are_as_good_as_nothing() -> None:
    nulls = dict.fromkeys(("model", "stream", "stream_options", "max_tokens", "temperature", "seed", "n", "headrace"))
    assert chat_task({**HI, **nulls}, {}, Fleet())[1] == chat_task(HI, {}, Fleet())[1]


def test_a_null_reaches_no_backend() -> None:
    nulls = dict.fromkeys(("response_format", "stop", "tools", "tool_choice", "frequency_penalty", "user"))
    assert chat_task({**HI, **nulls, "logit_bias": {}}, {}, Fleet())[1].body.extra == {"logit_bias": {}}


def test_a_developer_speaks_as_the_system_which_every_template_knows() -> None:
    rules = {"role": "developer", "content": "Be kind.", "name": "me"}
    _, task = chat_task({"messages": [rules, *HI["messages"]]}, {}, Fleet())
    assert task.body.messages == ({"role": "system", "content": "Be kind.", "name": "me"}, *HI["messages"])


@pytest.mark.parametrize(
    ("field", "value", "at"),
    [
        ("tools", {}, "tools"),
        ("response_format", "json", "response_format"),
        ("response_format", {"type": "json_schema", "json_schema": "x"}, "response_format.json_schema"),
        (
            "response_format",
            {"type": "json_schema", "json_schema": {"schema": 7}},
            "response_format.json_schema.schema",
        ),
        ("chat_template_kwargs", ["enable_thinking"], "chat_template_kwargs"),
        ("stop", 7, "stop"),
        ("stop", {"a": "b"}, "stop"),
        ("stop", ["a", 7], "stop[1]"),
        ("top_k", "40", "top_k"),
        ("presence_penalty", True, "presence_penalty"),
    ],
)
def test_what_is_translated_for_a_backend_must_have_its_form(field: str, value: Any, at: str) -> None:
    with pytest.raises(BadRequest, match="; expected a") as caught:
        chat_task({**HI, field: value}, {}, Fleet())
    assert caught.value.field == at


def test_what_has_its_form_goes_on_as_it_came() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    extra = {"stop": "a", "top_k": 40.0, "min_p": 0, "response_format": form, "chat_template_kwargs": {"a": 1}}
    assert chat_task({**HI, **extra}, {}, Fleet())[1].body.extra == extra


def test_the_newer_limit_stands_over_the_older() -> None:
    _, task = chat_task({**HI, "max_tokens": 5, "max_completion_tokens": 7, "headrace": {"max_tokens": 9}}, {}, Fleet())
    assert task.options.max_tokens == 7


def test_the_newer_limit_stands_also_where_there_is_none() -> None:
    _, task = chat_task({**HI, "max_tokens": 5, "max_completion_tokens": -1}, {}, Fleet())
    assert task.options.max_tokens is None


def test_what_was_read_here_does_not_go_to_the_backend_again() -> None:
    _, task = chat_task({**HI, "stream": True, "prompt_cache_key": "k", "headrace": {}, "logit_bias": {}}, {}, Fleet())
    assert task.body.extra == {"logit_bias": {}}
    assert task.session is None, "chat completions name their session in a header"


def test_the_number_of_choices_has_a_bound() -> None:
    assert chat_task({**HI, "n": 3}, {}, Fleet())[0].n == 3
    with pytest.raises(BadRequest, match="n: "):
        chat_task({**HI, "n": 17}, {}, Fleet())


def test_a_chats_side_task_is_in_the_background_and_leaves_its_session_alone() -> None:
    headers = {"x-openwebui-chat-id": "c1", "x-headrace-task-kind": "title_generation"}
    _, task = chat_task({**HI, "headrace": {"urgency": "interactive"}}, headers, Fleet())
    assert (task.urgency, task.session) == ("background", None)
    _, task = chat_task(HI, {"x-openwebui-chat-id": "c1", "x-headrace-task-kind": ""}, Fleet())
    assert (task.urgency, task.session) == ("interactive", "c1")


def test_tools_that_are_not_allowed_are_not_shown() -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("read", "write")]
    choice = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": tools[:1]}}
    _, task = chat_task({**HI, "tools": tools, "tool_choice": choice}, {}, Fleet())
    assert task.body.extra == {"tools": tools[:1], "tool_choice": "auto"}
