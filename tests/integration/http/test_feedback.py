"""``POST /feedback``: what may be said, of what, and how a mistake is answered."""

from __future__ import annotations

import httpx
import pytest

from support.http_examples import example
from support.router_port import MemoryRouter


async def answered(http: httpx.AsyncClient, router: MemoryRouter) -> str:
    task = str((await http.post("/route", json={"prompt": "hi"})).json()["task"])
    async with router.follow(task) as updates:
        async for _ in updates:
            pass
    return task


@pytest.mark.parametrize(
    ("said", "value"), [({"rating": -1}, 0.0), ({"rating": 0}, 0.5), ({"rating": 1}, 1.0), ({"value": 0.25}, 0.25)]
)
async def test_a_thumb_or_a_value_is_stored_for_whoever_says_it(
    http: httpx.AsyncClient, router: MemoryRouter, said: dict[str, float], value: float
) -> None:
    task = await answered(http, router)
    reply = await http.post(
        "/feedback", json={"task": task, **said, "comment": "so"}, headers={"x-headrace-client": "me"}
    )
    assert (reply.status_code, reply.headers["x-headrace-task"]) == (200, task)
    (row,) = reply.json()["stored"]
    assert (row["value"], row["client"], row["comment"], row["worker_name"]) == (value, "me", "so", "desktop")
    (event,) = router.judgements
    assert (event.value, event.client, event.tasks) == (value, "me", (task,))


async def test_the_documented_answer_has_the_fields_that_are_sent(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    task = await answered(http, router)
    reply = (await http.post("/feedback", json={"task": task, "rating": 1})).json()
    documented = example("`POST /feedback`")
    assert set(documented) == set(reply)
    assert set(documented["stored"][0]) == set(reply["stored"][0])


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"rating": 1}, "task", "one of task, message and compare"),
        ({"task": "t1", "message": "m", "rating": 1}, "task", "task and message"),
        ({"task": "t1"}, "rating", "either rating"),
        ({"task": "t1", "rating": 1, "value": 1}, "rating", "either rating"),
        ({"task": "t1", "rating": 2}, "rating", "rating"),
        ({"task": "t1", "value": 1.5}, "value", "value"),
        ({"task": "t1", "rating": 1, "pick": 1}, "pick", "pick goes with compare"),
        ({"compare": "c1"}, "pick", "the number or the task"),
        ({"compare": "c1", "pick": 1, "rating": 1}, "rating", "no rating of its own"),
        ({"compare": "c1", "pick": 0}, "pick", "pick"),
        ({"task": "t1", "rating": 1, "commment": "x"}, "commment", "unknown field"),
        ({"task": "t1", "rating": 1, "comment": "x" * 2001}, "comment", "comment"),
    ],
)
async def test_what_cannot_be_meant_is_refused_by_its_field(
    http: httpx.AsyncClient, router: MemoryRouter, body: dict[str, object], field: str, words: str
) -> None:
    await answered(http, router)
    reply = await http.post("/feedback", json=body)
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["field"]) == (400, "invalid_request", field)
    assert words in error["message"]
    assert router.judgements == []


@pytest.mark.parametrize("name", ["nobody", "a.b", "*", "x" * 65])
async def test_an_unknown_task_is_not_found_and_an_impossible_one_not_even_asked_for(
    http: httpx.AsyncClient, router: MemoryRouter, name: str
) -> None:
    for body in ({"task": name, "rating": 1}, {"compare": name, "pick": 1}):
        reply = await http.post("/feedback", json=body)
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "unknown_task"), body
    reply = await http.post("/feedback", json={"message": "nobody's", "rating": 1})
    assert reply.status_code == 404 and "submitted as message" in reply.json()["error"]["message"]


async def test_a_rating_before_the_answer_says_when_to_come_again(
    http: httpx.AsyncClient, router: MemoryRouter
) -> None:
    router.script = None
    task = (await http.post("/route", json={"prompt": "hi"})).json()["task"]
    reply = await http.post("/feedback", json={"task": task, "rating": 1})
    assert (reply.status_code, reply.json()["error"]["code"], reply.headers["retry-after"]) == (409, "not_rated", "2")


async def test_both_paths_are_listed_for_machines(http: httpx.AsyncClient) -> None:
    paths = (await http.get("/openapi.json")).json()["paths"]
    assert {"post"} == set(paths["/feedback"]) == set(paths["/compare"])
    assert {"get"} == set(paths["/compare/{compare}"])


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/route", {"prompt": "hi", "message": "msg-1"}),
        ("/route", {"prompt": "hi"}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]}),
    ],
)
async def test_a_client_gives_an_answer_a_name_of_its_own(
    http: httpx.AsyncClient, router: MemoryRouter, path: str, body: dict[str, object]
) -> None:
    named = {} if "message" in body else {"x-headrace-message": "msg-1"}
    assert (await http.post(path, json=body, headers=named)).is_success
    assert router.last.asked.message == "msg-1"
    refused = await http.post(
        path,
        json=body | ({"message": "m" * 129} if not named else {}),
        headers=named and {"x-headrace-message": "m" * 129},
    )
    assert refused.status_code == 400
