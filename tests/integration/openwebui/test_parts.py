"""The pure parts of the functions for Open WebUI: what is a side task, what is whose text, what is told of an end."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from services.cli.pipe import BRIDGE, PIPE
from support.functions import REWRITTEN, bridge_module, load, pipe_module as pipe, text_of

Json = dict[str, Any]
FOOTER = pipe.FOOTER.format("code → qwen3 @ desktop (4.2 s expected) · 180 tokens at 46.0/s")
TITLE = (
    '### Task:\nGenerate a title.\nJSON: { "title": "..." }\n'
    "<chat_history>\nUSER: Why is\nthe sky blue?\nASSISTANT: It\n</chat_history>"
)


@pytest.mark.parametrize("name", [PIPE, BRIDGE])
def test_open_webui_takes_the_file(name: str) -> None:
    text = text_of(name)
    head = text.split('"""')[1].strip().splitlines()
    keys = [line.partition(":")[0] for line in head]
    assert text.startswith('"""\n') and "title" in keys and "required_open_webui_version" in keys
    assert "requirements" not in keys  # it would be installed at every start
    assert [word for word in REWRITTEN if f"from {word}" in text] == []
    classes = [kind for kind in ("Pipe", "Filter", "Action", "Event") if hasattr(load(name), kind)]
    assert classes == ["Pipe" if name == PIPE else "Event"]


def test_the_valves_have_defaults_and_bounds() -> None:
    valves = pipe.Pipe.Valves()
    assert (valves.POLL_INTERVAL, valves.POLL_MAX_RETRIES, valves.SHOW_METADATA, valves.TASKS) == (
        2.0,
        150,
        True,
        "local",
    )
    for wrong in ({"TASKS": "both"}, {"POLL_INTERVAL": 0}, {"POLL_MAX_RETRIES": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            pipe.Pipe.Valves(**wrong)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"quality": 0.7, "quality_level": "model_domain", "quality_n": 12}, "quality 0.70 judged 12 times"),
        ({"quality": 0.7, "quality_level": "cell", "quality_n": 1}, "quality 0.70 judged once"),
        ({"quality": 0.7, "quality_level": "model", "quality_n": 3}, "quality 0.70 judged 3 times in other domains"),
        ({"quality": 0.7, "quality_level": "family", "quality_n": 3}, "quality 0.70 judged 3 times in its family"),
        ({"quality": 0.5, "quality_level": "prior", "quality_n": 0}, "quality 0.50 assumed: never judged"),
        ({"quality": 0.5}, ""),  # an older router does not say where it comes from
        ({"quality": None, "quality_level": None, "quality_n": None}, ""),
    ],
)
def test_a_quality_says_where_it_comes_from(told: Json, words: str) -> None:
    assert ", ".join(pipe.quality_words(told)) == words


async def test_it_is_one_model_unless_the_valve_says_otherwise() -> None:
    function = pipe.Pipe()
    assert not hasattr(function, "pipes")
    function.valves = pipe.Pipe.Valves(VIRTUAL_MODELS=True, ROUTER_URL="http://127.0.0.1:1")
    assert [row["id"] for row in await function.pipes()] == ["auto"]  # nobody answers there: the model does not vanish


def test_a_model_that_got_lost_in_blank_lines_holds_nobody_up() -> None:
    """A pattern that began with blanks looked at each of them from each of them: for minutes, in everybody's Open WebUI."""
    lost = "An answer." + "\n" * 300_000
    assert pipe.clean(lost) == lost
    assert pipe.clean(lost + FOOTER) == "An answer."
    lost_title = {"messages": [{"role": "user", "content": f"<chat_history>USER: Why{' ' * 300_000}</chat_history>"}]}
    assert json.loads(pipe.local_answer("title_generation", lost_title, {})) == {"title": "Why"}


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("An answer.", "An answer."),
        (f"  indented\n\n{FOOTER}", "  indented"),
        (f"An answer.{FOOTER}", "An answer."),
        (f"Begun{FOOTER}\n\n and gone on{FOOTER}", "Begun and gone on"),
        (f"Lost{pipe.AGAIN.format('desktop is silent')}Whole{FOOTER}", "Whole"),
        ("A rule\n\n---\n*of somebody's own*", "A rule\n\n---\n*of somebody's own*"),
    ],
)
def test_what_was_written_under_an_answer_is_no_part_of_it(text: str, clean: str) -> None:
    assert pipe.clean(text) == clean
    parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    asked = pipe.request_of(
        {"messages": [{"role": "assistant", "content": parts}, {"role": "user", "content": text}]}, tools=False
    )
    assert asked["messages"][0]["content"] == [{"type": "text", "text": clean}, parts[1]]
    assert asked["messages"][1]["content"] == text  # a user's own words stay


def test_a_request_has_what_a_backend_reads_and_nothing_else() -> None:
    body = {
        "model": "headrace.canary", "messages": [], "stream": True, "temperature": 0.2, "max_tokens": 9, "stop": ["x"],
        "tools": [{}], "tool_choice": "auto", "chat_id": "c", "stream_options": {}, "features": {},
    }  # fmt: skip
    asked = pipe.request_of(body, tools=False)
    assert asked == {
        "messages": [], "route": "canary", "options": {"temperature": 0.2}, "constraints": {"max_tokens": 9},
        "extra": {"stop": ["x"]},
    }  # fmt: skip
    assert pipe.request_of(body, tools=True)["extra"] == {"stop": ["x"], "tools": [{}], "tool_choice": "auto"}
    assert "route" not in pipe.request_of({"model": "headrace.auto", "messages": []}, tools=False)


@pytest.mark.parametrize(
    ("body", "task", "message", "kind"),
    [
        ({"messages": [{"role": "user", "content": "hi"}]}, "tags_generation", None, "tags_generation"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "moa_response_generation", None, None),
        ({"messages": [{"role": "user", "content": TITLE}]}, None, None, "title_generation"),
        ({"messages": [{"role": "user", "content": TITLE}]}, None, "m1", None),
        ({"messages": [{"role": "user", "content": TITLE}], "stream": True}, None, None, None),
        ({"messages": [{"role": "user", "content": "### Task: mow the lawn"}]}, None, None, None),
        ({"messages": []}, None, None, None),
    ],
)
def test_side_tasks_are_known(body: dict[str, Any], task: str | None, message: str | None, kind: str | None) -> None:
    assert pipe.side_task(body, task, message) == kind


def test_side_tasks_are_answered_in_their_form() -> None:
    body = {"messages": [{"role": "user", "content": TITLE}]}
    assert json.loads(pipe.local_answer("title_generation", body, {})) == {"title": "Why is the sky blue?"}
    long = {"messages": [{"role": "user", "content": "水車小屋について教えてください。" * 9}]}
    assert json.loads(pipe.local_answer("title_generation", body, long))["title"].endswith("…")
    assert json.loads(pipe.local_answer("tags_generation", body, {})) == {"tags": []}
    assert json.loads(pipe.local_answer("follow_up_generation", body, {})) == {"follow_ups": []}
    assert pipe.local_answer("emoji_generation", body, {}) == ""


@pytest.mark.parametrize(
    ("kind", "said", "usable"),
    [
        ("title_generation", '{"title": "Blue skies"}', {"title": "Blue skies"}),
        (
            "title_generation",
            'Sure! ```json\n{"title": " Blue\\nskies "}\n``` {"title": "no"}',
            {"title": "Blue skies"},
        ),
        ("title_generation", '{"title": "' + "x" * 500 + '"}', {"title": "x" * 80}),
        ("tags_generation", '{"tags": ["Sky", 3, "", null, "Light"], "more": 1}', {"tags": ["Sky", "Light"]}),
        ("follow_up_generation", '{"follow_ups": ["a?", "b?", "c?", "d?"]}', {"follow_ups": ["a?", "b?", "c?"]}),
        ("title_generation", "Blue skies", None),
        ("title_generation", "", None),
        ("title_generation", '{"title": "Blue sk', None),
        ("title_generation", "{title: Blue}", None),
        ("title_generation", '{"title": {"en": "Blue"}}', None),
        ("title_generation", '{"title": "  "}', None),
        ("title_generation", '{"titel": "Blue"}', None),
        ("tags_generation", '{"tags": "sky"}', None),
        ("tags_generation", '{"tags": []}', None),
        ("tags_generation", '{"tags": [{"name": "sky"}]}', None),
        ("follow_up_generation", '{"a":' * 20_000, None),
    ],
)
def test_what_a_small_model_says_is_used_where_it_keeps_to_the_form(kind: str, said: str, usable: Json | None) -> None:
    told = pipe.usable(kind, said)
    assert (told if told is None else json.loads(told)) == usable


def test_what_a_small_model_copied_from_its_prompt_is_not_used() -> None:
    """As smollm2:135m did in a real Open WebUI."""
    prompt = (
        'JSON format: { "title": "your concise title here" } or { "tags": ["tag1", "tag2", "tag3"] }\n'
        '<chat_history>\nUSER: What is "Blue skies"?\n</chat_history>'
    )
    for copied in ("JSON format: your concise title here", "Your concise title here,"):
        assert pipe.usable("title_generation", json.dumps({"title": copied}), prompt) is None
    assert pipe.usable("tags_generation", '{"tags": ["tag1", "tag2"]}', prompt) is None
    assert pipe.usable("tags_generation", '{"tags": ["tag1", "Sky", "Sky"]}', prompt) == '{"tags": ["Sky"]}'
    assert pipe.usable("title_generation", '{"title": "Blue skies"}', prompt) == '{"title": "Blue skies"}'
    assert pipe.usable("title_generation", '{"title": "My title and tags"}', prompt) == '{"title": "My title and tags"}'


def test_a_small_model_is_held_to_the_form_where_its_server_can_do_that() -> None:
    title, tags = pipe.side_form("title_generation"), pipe.side_form("tags_generation")
    assert title["json_schema"]["schema"]["properties"]["title"]["maxLength"] == 80
    assert tags["json_schema"]["schema"]["properties"]["tags"]["maxItems"] == 4


def test_the_smallest_model_in_memory_answers_them_otherwise() -> None:
    def row(name: str, size: int | None, *, resident: bool = True, alive: bool = True, **more: Any) -> dict[str, Any]:
        return {"name": name, "holders": [{"resident": resident, "alive": alive, "bytes": size}], **more}

    embeds = row("embeds", 1, capabilities=["embedding"])
    rows = [
        row("big", 9),
        row("small", 2),
        row("cold", 1, resident=False),
        row("lost", 1, alive=False),
        embeds,
        row("unsized", None),
    ]
    assert pipe.smallest_loaded(rows) == "small"
    assert pipe.smallest_loaded(rows[-1:]) == "unsized"
    assert pipe.smallest_loaded([row("cold", 1, resident=False)]) is None


def test_a_stream_that_begins_again_repeats_nothing() -> None:
    shown = pipe.Shown()
    told = [*shown.token({"attempt": 1, "text": "one ", "thinking": "hm"}), *shown.token({"attempt": 1, "text": "two"})]
    shown.replay()
    told += [
        *shown.token({"attempt": 1, "text": "one tw", "thinking": "hm"}),
        *shown.token({"attempt": 1, "text": "o three"}),
    ]
    told += shown.rest({"attempt": 1, "text": "one two three.", "thinking": "hm"})
    assert "".join(delta.get("content", "") for delta in told) == "one two three."
    assert "".join(delta.get("reasoning_content", "") for delta in told) == "hm"


def test_another_attempt_says_that_it_begins_again() -> None:
    shown = pipe.Shown()
    shown.token({"attempt": 1, "text": "half an ans"})
    shown.why = "lost: desktop is silent"
    again, fresh = shown.token({"attempt": 2, "text": "A whole answer"})
    assert "lost: desktop is silent" in again["content"]
    assert pipe.clean(f"half an ans{again['content']}{fresh['content']}") == "A whole answer"


def test_calls_without_numbers_are_numbered_across_the_stream() -> None:
    shown = pipe.Shown()
    calls = [
        shown.token({"attempt": 1, "tool_calls": [{"function": {"name": name}}]})[0]["tool_calls"] for name in "ab"
    ]
    assert [call["index"] for (call,) in calls] == [0, 1]
    assert shown.rest({"attempt": 1, "text": "", "tool_calls": [{}, {}]}) == []


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (
            {"state": "failed", "failure": "busy", "detail": "nobody was free within its deadline of 60 s", "waited_s": 60.2},
            "busy: nobody was free within its deadline of 60 s (waited 60 s)",
        ),
        ({"state": "dead", "attempt": 3, "detail": "the last one: oom"}, "busy: given up after 3 attempts: the last one: oom"),
        ({"state": "dead", "attempt": 3, "detail": "gave up after 3 started attempts"}, "busy: gave up after 3 started attempts"),
        ({"state": "failed", "failure": "rejected", "detail": "no such tool"}, "failed (rejected): no such tool"),
        ({"state": "cancelled", "detail": "cancelled over HTTP"}, "cancelled: cancelled over HTTP"),
    ],
)  # fmt: skip
def test_an_end_without_an_answer_says_why(status: dict[str, Any], words: str) -> None:
    assert words in pipe.end_words(status)


def test_the_footer_tells_what_was_measured_and_only_that() -> None:
    times = {"decode_s": 4.0, "first_token_s": 0.014, "queue_s": 2.0}
    whole = {"tokens": {"output": 180}, "times": times, "finish_reason": "length"}
    assert (
        pipe._measured(whole)
        == "180 tokens at 45.0/s · first after 14 ms · waited 2.0 s · cut off at its limit of tokens"
    )
    assert pipe._measured(whole | {"outcome": "truncated"}).endswith(
        " · cut off by the model's server: window full, or a limit of its own"
    )
    assert pipe._measured({"tokens": {"output": None}, "times": {"first_token_s": 2.5}}) == "first after 2.5 s"
    assert pipe._measured({}) == ""


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"rating": 1}, {"rating": 1}),
        (
            {"rating": -1, "details": {"rating": 1}, "reason": "not_correct", "comment": "no"},
            {"value": 0.0, "comment": "not_correct: no"},
        ),
        ({"rating": 1, "details": {"rating": 10}}, {"value": 1.0}),
        ({"rating": None}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_a_rating_is_what_the_router_takes(data: dict[str, Any], said: dict[str, Any] | None) -> None:
    whole = None if said is None else {"message": "m1", "client": "u1", **said}
    assert bridge_module.rating_of("u1", data, {"message_id": "m1"}) == whole
    assert bridge_module.rating_of("u1", data, {}) is None


async def test_a_whole_answer_has_whole_calls() -> None:
    """A stream's pieces of a call are joined by whoever asked for no stream."""

    class Answer:
        model = "headrace.auto"

        async def chunks(self) -> AsyncGenerator[Json]:
            call: Json = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":'}}
            other = {"index": 1, "id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}
            for pieces in ([call], [{"index": 0, "function": {"arguments": " 1}"}}, other]):
                yield {"id": "x", "choices": [{"index": 0, "delta": {"tool_calls": pieces}, "finish_reason": None}]}

    (choice,) = (await pipe.whole(Answer()))["choices"]
    assert choice["message"]["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
        {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}},
    ]
