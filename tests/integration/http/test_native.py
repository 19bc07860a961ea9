"""Headrace's own paths, as docs/http.md promises them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest

from schemas.cells import fold
from schemas.errors import BusError
from schemas.samples import Sample
from services.router.fleet import Fleet
from services.router.http.live import Timing
from services.router.port import Busy
from support.router_port import DESKTOP, MemoryRouter


async def events_of(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, dict[str, object]]]:
    name = ""
    async for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, msgspec.json.decode(line.removeprefix("data: "))


async def test_a_prompt_is_accepted_with_its_domain_and_a_provisional_decision(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    reply = await http.post("/route", json={"prompt": "Hi", "constraints": {"domain": "code", "max_tokens": 40}})
    assert reply.status_code == 202
    assert reply.headers["x-headrace-task"] == "t1"
    body = reply.json()
    assert (body["task"], body["domain"]["label"], body["language"]) == ("t1", "code", "en")
    assert body["decision"]["worker_name"] == "desktop"
    assert body["decision"]["expected_s"] == 4.0
    assert router.last.asked.options.max_tokens == 40


async def test_a_misspelt_domain_is_taken_as_it_is_and_said_to_be_one(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    told = "domain 'maht' is no known label, and is taken as one of its own; 'maths' is one"
    reply = await http.post("/route", json={"prompt": "Hi", "constraints": {"domain": "maht"}})
    assert reply.json()["warning"] == reply.headers["x-headrace-warning"] == told
    assert router.last.asked.domain == "maht"
    preview = (await http.get("/route/preview", params={"prompt": "Hi", "domain": "maht"})).json()
    assert preview["words"][-1] == f"Note: {told}."
    chat = {"model": "auto", "messages": [{"role": "user", "content": "Hi"}], "headrace": {"domain": "maht"}}
    assert (await http.post("/v1/chat/completions", json=chat)).headers["x-headrace-warning"] == told
    right = await http.post("/route", json={"prompt": "Hi", "constraints": {"domain": "maths"}})
    assert right.json()["warning"] is None and "x-headrace-warning" not in right.headers


async def test_a_monitor_that_asks_for_the_head_alone_is_answered(http: httpx.AsyncClient) -> None:
    assert [(await http.head(path)).status_code for path in ("/healthz", "/readyz")] == [200, 200]


async def test_a_chat_history_is_passed_on_whole(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    messages = [
        {"role": "system", "content": "Be brief", "name": "x"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": "42"},
    ]
    await http.post("/route", json={"messages": messages, "extra": {"think": False}})
    assert list(router.last.asked.body.messages) == messages
    assert router.last.asked.body.extra == {"think": False}


async def test_auto_leaves_the_choice_open_and_a_worker_may_be_named(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    await http.post("/route", json={"prompt": "Hi", "model": "auto", "constraints": {"worker": "laptop"}})
    assert (router.last.asked.wants.model, router.last.asked.wants.worker) == (None, "w-2")


@pytest.mark.parametrize(
    ("headers", "body", "client", "session"),
    [
        ({}, {}, "local", None),
        ({"authorization": "Bearer secret"}, {}, "key-2bb80d537b1d", None),
        ({"authorization": "Bearer secret", "x-headrace-client": "me"}, {}, "me", None),
        ({"x-headrace-client": "me", "session-id": "s1"}, {"client": "you", "session": "s2"}, "you", "s2"),
        ({"session-id": "s1", "x-client-request-id": "r1"}, {}, "local", "s1"),
        ({"x-client-request-id": "r1"}, {}, "local", "r1"),
    ],
)
async def test_client_and_session_come_from_the_body_then_the_headers(
    http: httpx.AsyncClient,
    router: MemoryRouter,
    headers: dict[str, str],
    body: dict[str, str],
    client: str,
    session: str | None,
) -> None:
    await http.post("/route", json={"prompt": "Hi", **body}, headers=headers)
    assert (router.last.asked.client, router.last.asked.session) == (client, session)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", None),
        (b"{", None),
        (b"[1]", None),
        (b"\xff\xfe", None),
        (b"[" * 100_000, None),
        (b"{}", "prompt"),
        (b'{"prompt": ""}', "prompt"),
        (b'{"prompt": 7}', "prompt"),
        (b'{"prompt": "a", "messages": []}', "prompt"),
        (b'{"messages": []}', "messages"),
        (b'{"messages": {}}', "messages"),
        (b'{"messages": ["a"]}', "messages[0]"),
        (b'{"messages": [{"role": "user", "content": "a"}, {"content": "b"}]}', "messages[1].role"),
        (b'{"messages": [{"role": "user", "content": 7}]}', "messages[0].content"),
        (b'{"messages": [{"role": "user", "content": [{"text": "a"}]}]}', "messages[0].content[0]"),
        (b'{"messages": [{"role": "user", "content": [{"type": "text"}]}]}', "messages[0].content[0].text"),
        (b'{"prompt": "a", "modle": "qwen3"}', "modle"),
        (b'{"prompt": "a", "constraints": {"max_tokens": 0}}', "constraints.max_tokens"),
        (b'{"prompt": "a", "constraints": {"urgency": "now"}}', "constraints.urgency"),
        (b'{"prompt": "a", "constraints": {"worker": "nas"}}', "constraints.worker"),
        (b'{"prompt": "a", "constraints": {"deadlines": 1}}', "constraints.deadlines"),
        (b'{"prompt": "a", "options": {"temperature": "hot"}}', "options.temperature"),
        (b'{"prompt": "a", "extra": {"tools": 7}}', "extra.tools"),
        (b'{"prompt": "a", "extra": {"stream": false}}', "extra.stream"),
    ],
)
async def test_a_bad_body_is_answered_with_400_and_its_field(
    http: httpx.AsyncClient, body: bytes, field: str | None
) -> None:
    reply = await http.post("/route", content=body)
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert (error["code"], error["field"]) == ("invalid_request", field)


async def test_an_unknown_model_is_404_at_once_with_the_nearest_names(http: httpx.AsyncClient) -> None:
    reply = await http.post("/route", json={"prompt": "Hi", "model": "qwen33"})
    assert reply.status_code == 404
    error = reply.json()["error"]
    assert (error["code"], error["field"], error["nearest"]) == ("unknown_model", "model", ["qwen3"])


async def test_busy_says_when_to_come_back(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.refusal = Busy("1000 tasks wait", retry_after_s=7.2)
    reply = await http.post("/route", json={"prompt": "Hi"})
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "8")
    assert reply.json()["error"]["retry_after_s"] == 7.2
    router.refusal = Busy("nobody is awake", retry_after_s=0.1, status=503)
    reply = await http.post("/route", json={"prompt": "Hi"})
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "1")


async def test_what_could_not_be_stored_was_not_accepted(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.refusal = BusError("no answer from the server for 5 s")
    reply = await http.post("/route", json={"prompt": "Hi"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "not_stored")


async def test_a_body_above_the_limit_is_413(wire: httpx.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 2**20

    reply = await wire.post("/route", content=endless())
    assert (reply.status_code, reply.json()["error"]["code"]) == (413, "too_large")


async def test_a_body_below_the_limit_passes(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    reply = await wire.post("/route", json={"prompt": "x" * (20 * 2**20)})
    assert reply.status_code == 202
    assert len(router.last.asked.body.prompt or "") == 20 * 2**20


async def test_a_declared_length_above_the_limit_is_refused_unread(http: httpx.AsyncClient) -> None:
    reply = await http.post("/route", content=b"{}", headers={"content-length": str(2**40)})
    assert reply.status_code == 413


@pytest.mark.parametrize(
    "path", ["/task/nobody", "/task/nobody/stream", "/explain/nobody", "/task/%2a.%3e", "/task/" + "a" * 99]
)
async def test_an_unknown_task_is_404(http: httpx.AsyncClient, path: str) -> None:
    reply = await http.get(path)
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "unknown_task")


async def test_unknown_paths_and_methods_are_named(http: httpx.AsyncClient) -> None:
    error = (await http.get("/nowhere")).json()["error"]
    assert error["code"] == "not_found" and "GET /openapi.json lists the paths" in error["message"]
    reply = await http.put("/route")
    assert (reply.status_code, reply.json()["error"]["code"]) == (405, "method_not_allowed")
    assert "PUT /route: Method Not Allowed, only POST; GET /openapi.json" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/chat/completions", "/v1/chat/completions"),
        ("/v1/chat/completions/", "/v1/chat/completions"),
        ("//v1/chat/completions", "/v1/chat/completions"),
        ("/v1/v1/messages", "/v1/messages"),
        ("/openai/v1/responses", "/v1/responses"),
        ("/chat", "/api/chat"),
        ("/api/tags/", "/api/tags"),
        ("/v1/chat/completions/chat/completions", "/v1/chat/completions"),
        ("/api/chat/api/chat", "/api/chat"),
    ],
)
async def test_a_base_url_that_is_nearly_right_is_told_what_is(http: httpx.AsyncClient, path: str, meant: str) -> None:
    reply = await http.post(f"http://router{path}", json={})
    assert reply.status_code == 404
    assert f"POST {path}: Not Found; is {meant} meant?" in reply.text


@pytest.mark.parametrize(("path", "tells"), [("/v1", "/v1/models"), ("/v1/", "/v1/models"), ("/api/", "/api/tags")])
async def test_a_base_url_alone_says_what_it_is(http: httpx.AsyncClient, path: str, tells: str) -> None:
    reply = await http.get(f"http://router{path}")
    assert reply.status_code == 404
    assert f"it is a base URL for clients; GET {tells} lists the models" in reply.text


async def test_the_models_may_have_a_slash_at_their_end(http: httpx.AsyncClient) -> None:
    assert (await http.get("/v1/models/")).json() == (await http.get("/v1/models")).json()


async def test_what_a_newcomer_reads_at_the_root_names_paths_that_there_are(http: httpx.AsyncClient) -> None:
    words = (await http.get("/")).text
    named = set(re.findall(r"(?<!\w)/[a-z][\w./]*", words)) - {"/task/", "/explain/", "/stream"}
    assert named >= {"/compare", "/feedback", "/bench", "/openapi.json", "/v1/messages"}
    paths = set((await http.get("/openapi.json")).json()["paths"])
    assert named - {"/openapi.json"} <= paths


async def test_a_task_is_followed_from_its_queue_to_its_end(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.script = None
    await wire.post("/route", json={"prompt": "Hi"})
    async with wire.stream("GET", "/task/t1/stream") as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        events = events_of(reply.aiter_lines())
        name, waiting = await anext(events)
        assert (name, waiting["state"], waiting["position"]) == ("status", "waiting", 1)
        await router.last.move(reason="busy: desktop is free in 4 s")
        assert (await anext(events))[1]["reason"] == "busy: desktop is free in 4 s"
        await router.last.start()
        await anext(events)
        await router.last.say("a\n\nb", thinking="hm")
        assert await anext(events) == ("token", {"attempt": 1, "index": 0, "text": "a\n\nb", "thinking": "hm"})
        await router.last.restart()
        assert await anext(events) == ("restart", {"attempt": 2, "reason": "lost: desktop is silent"})
        await router.last.start("w-2")
        await anext(events)
        await router.last.say("c")
        await anext(events)
        await router.last.complete()
        name, end = await anext(events)
        assert (name, end["worker_name"]) == ("end", "laptop")
        assert msgspec.convert(end["answer"], dict[str, object])["text"] == "c"
        assert [event async for event in events] == []


async def test_a_late_reader_gets_everything(http: httpx.AsyncClient) -> None:
    await http.post("/route", json={"prompt": "Hi"})
    first = await http.get("/task/t1/stream")
    again = await http.get("/task/t1/stream")
    assert "Hello" in first.text
    assert first.text == again.text


async def test_a_poller_sees_the_answer_at_the_end(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.script = None
    await http.post("/route", json={"prompt": "Hi"})
    waiting = (await http.get("/task/t1")).json()
    assert (waiting["status"]["state"], waiting["answer"]) == ("waiting", None)
    await router.last.start()
    await router.last.say("42")
    await router.last.complete()
    done = (await http.get("/task/t1")).json()
    assert (done["status"]["state"], done["answer"]["text"], done["worker_name"]) == ("completed", "42", "desktop")


async def test_a_task_is_cancelled_once(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.script = None
    await http.post("/route", json={"prompt": "Hi"})
    assert (await http.delete("/task/t1")).json() == {"task": "t1", "cancelled": True, "state": "waiting"}
    assert (await http.delete("/task/t1")).json() == {"task": "t1", "cancelled": False, "state": "cancelled"}
    assert (await http.delete("/task/t2")).status_code == 404


async def test_a_preview_shows_each_candidate_with_its_queue_and_stores_nothing(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    body = (await http.get("/route/preview", params={"prompt": "Hi", "max_tokens": "64"})).json()
    (candidate,) = body["candidates"]
    assert (candidate["worker_name"], candidate["capability"]) == ("desktop", "gpu_inference")
    assert candidate["queue"] == {"slots": 2, "free": 1, "running": 1, "waiting_s": 0.0, "armed": True}
    assert candidate["decode"] == {"value": 80.0, "level": "cell", "n": 12, "age_s": 40.5}
    assert body["removed"][0]["reason"] == "context: has 4096, needs 8192"
    assert body["choice"]["worker_name"] == "desktop"
    assert body["words"]
    assert router.plays == {}


@pytest.mark.parametrize(
    ("query", "status", "field"),
    [
        ({}, 400, "prompt"),
        ({"prompt": " "}, 400, "prompt"),
        ({"prompt": "a", "max_tokens": "many"}, 400, "max_tokens"),
        ({"prompt": "a", "colour": "red"}, 400, "colour"),
        ({"prompt": "a", "model": "gpt-9"}, 404, "model"),
    ],
)
async def test_a_bad_preview_names_its_field(
    http: httpx.AsyncClient, query: dict[str, str], status: int, field: str
) -> None:
    reply = await http.get("/route/preview", params=query)
    assert (reply.status_code, reply.json()["error"]["field"]) == (status, field)


async def test_explain_has_status_decision_events_and_words(http: httpx.AsyncClient) -> None:
    await http.post("/route", json={"prompt": "Hi"})
    body = (await http.get("/explain/t1")).json()
    assert body["status"]["task"] == "t1"
    assert body["decision"]["type"] == "task.routed"
    assert body["events"] == []
    assert body["words"]


async def test_a_preview_and_an_explanation_are_set_beside_another_decision_on_request(http: httpx.AsyncClient) -> None:
    await http.post("/route", json={"prompt": "Hi"})
    for path, query in (("/route/preview", {"prompt": "Hi"}), ("/explain/t1", {})):
        beside = (await http.get(path, params={**query, "versus": "slider=2"})).json()["versus"]
        assert (beside["label"], beside["words"]) == ("slider=2", ["The choice is the same."])
        [pair] = beside["pairs"]
        assert (pair["model"], pair["worker_name"]) == ("qwen3", "desktop")
        parts = {key: value for key, value in pair["before"].items() if key not in ("cost_s", "votes")}
        assert sum(parts.values()) == pytest.approx(pair["before"]["cost_s"])
        refused = await http.get(path, params={**query, "versus": "nonsense"})
        assert refused.status_code == 400
        assert "policies and routes are least_completion" in refused.json()["error"]["message"]


async def test_an_explanation_is_verified_on_request(http: httpx.AsyncClient) -> None:
    await http.post("/route", json={"prompt": "Hi"})
    [found] = (await http.get("/explain/t1", params={"verify": "true"})).json()["verification"]
    assert (found["decision"], found["same"], found["differences"]) == ("task.routed", True, [])
    assert "the same to the last bit" in found["words"]
    assert "verification" not in (await http.get("/explain/t1")).json()


async def test_the_fleet_is_shown_with_a_reason_for_each_null(http: httpx.AsyncClient) -> None:
    desktop, laptop = (await http.get("/workers")).json()["workers"]
    assert (desktop["state"], desktop["resident"], desktop["unknown"]) == ("ready", ["qwen3"], {})
    assert (laptop["state"], laptop["free"], laptop["unknown"]["others_use"]) == ("stale", None, "no_agent")


async def test_models_show_who_holds_them(http: httpx.AsyncClient) -> None:
    body = (await http.get("/models")).json()
    qwen, smol = body["models"]
    assert (qwen["name"], qwen["context"], qwen["one_digest"]) == ("qwen3", 40960, True)
    assert [holder["worker_name"] for holder in smol["holders"]] == ["desktop", "laptop"]
    assert smol["one_digest"] is False
    assert body["virtual"] == ["auto"]


async def test_statistics_are_rows_with_units_and_filters(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    for worker, us in (("w-1", 1_000_000), ("w-2", 4_000_000)):
        sample = Sample(
            seq=1,
            at_us=1,
            kind="speed",
            model="qwen3",
            domain="code",
            worker=worker,
            ok=True,
            decode_tok=100,
            decode_us=us,
        )
        router.numbers.put(fold([sample]))
    rows = (await http.get("/stats")).json()["rows"]
    assert [(row["worker_name"], row["fields"]["decode"]["value"]) for row in rows] == [
        ("desktop", 100.0),
        ("laptop", 25.0),
    ]
    why = "it was never loaded for an answer there"
    assert rows[0]["fields"]["load"] == {"value": None, "unit": "s", "n": 0, "p50": None, "p95": None, "reason": why}
    for named in ("w-2", "laptop"):
        rows = (await http.get("/stats", params={"worker": named, "model": "qwen3"})).json()["rows"]
        assert [row["worker"] for row in rows] == ["w-2"]
    assert (await http.get("/stats", params={"domain": "maths"})).json()["rows"] == []


async def test_the_queue_counts_what_waits_and_runs(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.script = None
    await http.post("/route", json={"prompt": "Hi"})
    await router.last.start()
    await http.post("/route", json={"prompt": "Hi"})
    router.tally.releases["qwen3"], router.tally.deviations["qwen3"] = 4, 1
    body = (await http.get("/queue")).json()
    assert body["since_start"] == {"releases": 4, "deviations": 1}
    assert (body["waiting"], body["released"], body["running"]) == (1, 0, 1)
    assert [task["task"] for task in body["tasks"]] == ["t1", "t2"]
    assert (body["tasks"][0]["worker"], body["tasks"][0]["worker_name"]) == ("w-1", "desktop")
    assert body["tasks"][1]["worker_name"] is None


async def test_readiness_is_503_until_the_log_is_caught_up(http: httpx.AsyncClient, router: MemoryRouter) -> None:
    assert (await http.get("/readyz")).status_code == 200
    router.state = msgspec.structs.replace(router.state, ready=False, reason="1 of 5 events read")
    reply = await http.get("/readyz")
    assert (reply.status_code, reply.json()["reason"]) == (503, "1 of 5 events read")
    assert (await http.get("/healthz")).json() == {"ok": True}
    assert "/route" in (await http.get("/")).text


@pytest.mark.parametrize("timing", [Timing(keep_alive_s=0.02, hold_s=0.01)])
async def test_silence_is_filled_with_comments(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.script = None
    await wire.post("/route", json={"prompt": "Hi"})
    async with wire.stream("GET", "/task/t1/stream") as reply:
        lines = reply.aiter_lines()
        while await anext(lines) != ": keep-alive":
            pass
        await router.last.fail("stall", "no token for 60 s")
        assert "event: end" in [line async for line in lines]


async def test_a_reader_that_leaves_is_noticed_at_once(wire: httpx.AsyncClient, router: MemoryRouter) -> None:
    router.script = None
    await wire.post("/route", json={"prompt": "Hi"})
    async with wire.stream("GET", "/task/t1/stream") as reply:
        await anext(events_of(reply.aiter_lines()))
    await router.last.abandoned()


async def test_an_unexpected_error_is_a_plain_500_without_its_words(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    router.view = Fleet(workers={"w-1": msgspec.structs.replace(DESKTOP, name=None)})  # type: ignore[arg-type]
    router.view.workers["w-2"] = DESKTOP
    reply = await http.get("/workers")
    assert (reply.status_code, reply.json()["error"]["code"]) == (500, "internal")
    assert "None" not in reply.text
