"""Ratings and signals on a real nats-server, from a click over HTTP to the fact in the log and the cell it becomes."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from schemas.events import AnyEvent, Options, QualityJudged, TaskCompleted
from services.router import feedback
from services.router.dispatch import state
from services.router.http.access import Access
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.router.service import RouterService
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from services.runtime.settings import Key
from support.backends import Gate, Hang, Script, Stub, ollama_done, ollama_frame, ollama_stand_in
from support.eventually import PATIENCE_S, eventually
from support.projecting import ProjectorProcess
from support.routers import dispatching, end_of, question, running_router, started, whole_log, with_workers
from support.worker_bench import running_worker


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with ollama_stand_in() as server:
        yield server


@pytest.fixture
async def router(natsd: EmbeddedServer, stub: Stub) -> AsyncIterator[RouterService]:
    async with running_router(natsd.url) as service, running_worker(natsd.url, stub.url):
        await dispatching(service)
        await with_workers(service, 1)
        yield service


@pytest.fixture
async def http(router: RouterService) -> AsyncIterator[httpx.AsyncClient]:
    async with over_http(router) as client:
        yield client


@asynccontextmanager
async def over_http(router: RouterService) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        serving(create_app(router), "127.0.0.1", 0) as url,
        httpx.AsyncClient(base_url=url, headers={"x-headrace-client": "me"}, timeout=PATIENCE_S) as client,
    ):
        yield client


async def answered(router: RouterService, **fields: object) -> str:
    task = (await router.submit(question(**fields))).task  # type: ignore[arg-type]
    await end_of(router, task)
    return task


async def judged(bus: Bus) -> list[QualityJudged]:
    return [event for event in await whole_log(bus) if isinstance(event, QualityJudged)]


async def test_a_thumb_becomes_a_judgement_of_whoever_answered(
    http: httpx.AsyncClient, router: RouterService, bus: Bus
) -> None:
    task = await answered(router)
    reply = await http.post("/feedback", json={"task": task, "rating": 1, "comment": "just right"})
    assert reply.status_code == 200 and not reply.json()["again"]
    (event,) = await judged(bus)
    (end,) = [e for e in await whole_log(bus) if isinstance(e, TaskCompleted)]
    assert (event.source, event.value, event.client, event.comment) == ("thumb", 1.0, "me", "just right")
    assert (event.model, event.digest, event.quantisation) == (end.model, end.digest, end.quantisation)
    assert end.digest is not None and end.quantisation is not None
    assert (event.domain, event.worker, event.tasks) == (end.domain, "w-bench", (task,))
    (stored,) = reply.json()["stored"]
    assert (stored["id"], stored["worker_name"], stored["value"]) == (event.id, "bench", 1.0)


async def test_the_same_thumb_twice_is_one_and_another_one_takes_its_place(
    http: httpx.AsyncClient, router: RouterService, bus: Bus
) -> None:
    task = await answered(router)
    replies = [
        (await http.post("/feedback", json={"task": task, "rating": rating})).json() for rating in (1, 1, -1, 1, 1)
    ]
    assert [reply["again"] for reply in replies] == [False, True, False, False, True]
    events = await judged(bus)
    assert [event.value for event in events] == [1.0, 0.0, 1.0]
    assert [reply["supersedes"] for reply in replies] == [None, None, events[0].id, events[1].id, None]


async def test_whoever_goes_back_to_a_former_word_is_heard_even_by_a_router_that_lags(
    http: httpx.AsyncClient, router: RouterService, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await answered(router)
    seen, late = router._lookback.events_of, [True]

    async def lagging(name: str) -> tuple[AnyEvent, ...]:
        facts = await seen(name)
        return tuple(fact for fact in facts if not isinstance(fact, QualityJudged)) if late[0] else facts

    monkeypatch.setattr(router._lookback, "events_of", lagging)
    for value in (1.0, 0.0):
        await http.post("/feedback", json={"task": task, "value": value})
    stored = await bus.last_seq("EVENTS")
    await eventually(
        lambda: router.desk.state.position >= stored
    )  # what it lags behind is said above, and nothing more

    async def stored_meanwhile(seq: int) -> None:
        late[0] = False

    monkeypatch.setattr(router._feedback, "_passed", stored_meanwhile)
    assert (await http.post("/feedback", json={"task": task, "value": 1.0})).json()["again"] is False
    assert [event.value for event in await judged(bus)] == [1.0, 0.0, 1.0]


async def test_a_click_that_is_sent_twice_at_once_is_stored_once(
    http: httpx.AsyncClient, router: RouterService, bus: Bus
) -> None:
    task = await answered(router)
    await asyncio.gather(*(http.post("/feedback", json={"task": task, "value": 0.8}) for _ in range(5)))
    assert [event.value for event in await judged(bus)] == [0.8]


async def test_by_its_message_a_key_that_speaks_for_nobody_rates_its_own_answers_only(
    router: RouterService, bus: Bus
) -> None:
    task = await answered(router, client="me", message="msg-1")
    keys = {
        name: Key(sha256=hashlib.sha256(name.encode()).hexdigest(), may_speak_for_users=name == "bridge")
        for name in ("me", "guest", "bridge")
    }
    async with (
        serving(create_app(router, access=Access(keys=keys)), "127.0.0.1", 0) as url,
        httpx.AsyncClient(base_url=url, timeout=PATIENCE_S) as client,
    ):
        said = {}
        for name in keys:
            bearer = {"authorization": f"Bearer {name}"}
            reply = await client.post("/feedback", json={"message": "msg-1", "rating": 1}, headers=bearer)
            said[name] = reply.status_code
    assert said == {"me": 200, "guest": 404, "bridge": 200}
    assert {(event.client, event.tasks) for event in await judged(bus)} == {("me", (task,)), ("bridge", (task,))}


async def test_a_thumb_for_an_answer_that_ends_in_a_moment_waits_for_it(
    http: httpx.AsyncClient, router: RouterService, stub: Stub, bus: Bus
) -> None:
    gate = Gate()
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_done()]))
    task = (await router.submit(question())).task
    await started(router, task)
    rating = asyncio.create_task(http.post("/feedback", json={"task": task, "rating": 1}))
    await eventually(lambda: bool(router._feedback._waiting))
    gate.opened.set()
    assert (await rating).status_code == 200
    assert [event.tasks for event in await judged(bus)] == [(task,)]


async def test_a_thumb_that_comes_minutes_early_is_refused_in_words_and_nothing_is_stored(
    http: httpx.AsyncClient, router: RouterService, stub: Stub, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback, "WAIT_S", 0.05)
    stub.scripts.append(Script([ollama_frame("a"), Hang()]))
    task = (await router.submit(question())).task
    await started(router, task)
    reply = await http.post("/feedback", json={"task": task, "rating": 1})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "not_rated")
    assert int(reply.headers["retry-after"]) >= 1
    assert "still running" in reply.json()["error"]["message"]
    await router.cancel(task, "enough")
    await end_of(router, task)
    reply = await http.post("/feedback", json={"task": task, "rating": 1})
    assert (reply.status_code, "retry-after" in reply.headers) == (409, False)
    assert "was cancelled: enough; there is no answer to rate" in reply.json()["error"]["message"]
    assert await judged(bus) == []


async def test_a_failed_task_has_no_answer_to_rate(http: httpx.AsyncClient, router: RouterService, bus: Bus) -> None:
    task = await answered(router, model="big:70b")
    reply = await http.post("/feedback", json={"task": task, "rating": -1})
    assert reply.status_code == 409 and "there is no answer to rate" in reply.json()["error"]["message"]
    assert await judged(bus) == []


async def test_an_answer_is_found_by_the_clients_name_for_it(
    http: httpx.AsyncClient, router: RouterService, bus: Bus
) -> None:
    task = await answered(router, message="msg-1")
    reply = await http.post("/feedback", json={"message": "msg-1", "rating": 1})
    assert (reply.status_code, reply.json()["task"]) == (200, task)
    assert reply.headers["x-headrace-task"] == task


async def test_of_two_answers_of_one_name_the_clients_own_is_meant(
    http: httpx.AsyncClient, router: RouterService
) -> None:
    mine = await answered(router, message="1", client="me")
    await answered(router, message="1", client="you")
    assert (await http.post("/feedback", json={"message": "1", "rating": 1})).json()["task"] == mine


async def test_an_unknown_task_is_not_found_and_an_old_one_is_by_the_projector(
    natsd: EmbeddedServer, router: RouterService, bus: Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ProjectorProcess(natsd.url, tmp_path) as projector, over_http(router) as http:
        monkeypatch.setattr(state, "RECENT", 1)
        old = await answered(router, message="old")
        await answered(router, text="another one")
        assert router.desk.state.task(old) is None
        await projector.reached(bus, await bus.last_seq("EVENTS"))
        for name in ({"task": "nobody"}, {"message": "nobody"}):
            reply = await http.post("/feedback", json={**name, "rating": 1})
            assert (reply.status_code, reply.json()["error"]["code"]) == (404, "unknown_task"), name
        for name in ({"task": old}, {"message": "old"}):
            assert (await http.post("/feedback", json={**name, "rating": 1})).json()["task"] == old
            await projector.reached(bus, await bus.last_seq("EVENTS"))
        assert [event.tasks for event in await judged(bus)] == [(old,)]


async def test_thumbs_too_early_twice_or_for_nobody_leave_the_cell_with_the_latest_word_alone(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feedback, "WAIT_S", 0.05)
    async with ProjectorProcess(natsd.url, tmp_path), over_http(router) as http:
        gate = Gate()
        stub.scripts.append(Script([ollama_frame("a"), gate, ollama_done()]))
        task = (await router.submit(question())).task
        await started(router, task)
        assert (await http.post("/feedback", json={"task": task, "rating": 1})).status_code == 409
        gate.opened.set()
        await end_of(router, task)
        for rating in (1, 1, 1, -1, -1):
            assert (await http.post("/feedback", json={"task": task, "rating": rating})).status_code == 200
        await http.post("/feedback", json={"task": task, "value": 0.5}, headers={"x-headrace-client": "you"})
        await http.post("/feedback", json={"task": "nobody", "rating": 1})

        async def quality() -> dict[str, Any] | None:
            rows = (await http.get("/stats")).json()["rows"]
            found = [row["fields"]["quality"] for row in rows if row["worker"] == "w-bench"]
            return found[0] if found and found[0]["n"] == 2 else None

        value = (await eventually(quality) or {})["value"]
        assert 0.2 < value < 0.3  # the mean of bad and so-so; the younger weighs a little more


async def test_without_a_projector_nobody_says_that_an_old_task_is_unknown(http: httpx.AsyncClient) -> None:
    reply = await http.post("/feedback", json={"task": "t1", "rating": 1})
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "unavailable")


async def signals(bus: Bus, *names: str) -> list[QualityJudged]:
    """Once there are as many as names."""

    async def look() -> list[QualityJudged] | None:
        found = [event for event in await judged(bus) if event.source == "signal"]
        return found if len(found) >= len(names) else None

    found = await eventually(look) or []
    assert sorted(event.signal or "" for event in found) == sorted(names)
    return found


async def test_an_empty_answer_and_one_that_is_cut_off_are_weak_evidence_and_one_at_its_own_limit_or_window_is_not(
    router: RouterService, stub: Stub, bus: Bus
) -> None:
    stub.scripts.append(Script([ollama_frame(thinking="hm"), ollama_done(done_reason="length")]))
    empty = await answered(router, text="one")
    stub.scripts.append(Script([ollama_frame("cut"), ollama_done(done_reason="length", eval_count=2)]))
    cut = await answered(router, text="two")
    stub.scripts.append(Script([ollama_frame("full"), ollama_done(done_reason="length", eval_count=4_096 - 20)]))
    full = await answered(router, text="three", options=Options(max_tokens=8_000))
    whole = await answered(router, text="four")  # the stand-in stops at max_tokens
    found = {event.signal: event for event in await signals(bus, "empty", "cut_off")}
    ends = {event.task: event for event in await whole_log(bus) if isinstance(event, TaskCompleted)}
    assert (ends[full].outcome, ends[full].finish_reason, ends[full].context) == ("truncated", "length", 4_096)
    assert (found["empty"].tasks, found["cut_off"].tasks) == ((empty,), (cut,))
    assert all((event.value, event.worker, event.model) == (0.0, "w-bench", "m:latest") for event in found.values())
    assert router.desk.state.task(whole) is not None
    explained = await router.explain(empty)
    assert explained is not None and any(isinstance(event, QualityJudged) for event in explained[2])


async def test_what_is_asked_again_at_once_speaks_against_the_first_answer(router: RouterService, bus: Bus) -> None:
    first = await answered(router, text="Why is the sky blue?")
    other = await answered(router, text="Why is the sky blue?", client="somebody else")
    again = await answered(router, text="Why is the sky blue?")
    (event,) = await signals(bus, "asked_again")
    assert event.tasks == (first,)
    task = router.desk.state.task(again)
    assert task is not None and task.submitted.repeats == first
    assert router.desk.state.task(other) is not None


@pytest.mark.parametrize("how", [{"kind": "compare"}, {"urgency": "batch"}, {"parent": "p"}])
async def test_what_is_no_persons_question_is_never_asked_again(
    router: RouterService, bus: Bus, how: dict[str, str]
) -> None:
    for _ in range(2):
        task = await answered(router, **how)
    found = router.desk.state.task(task)
    assert found is not None and found.submitted.repeats is None
    assert await judged(bus) == []


async def test_a_signal_that_a_dead_dispatcher_left_unsaid_is_said_by_the_next_and_once(
    natsd: EmbeddedServer, stub: Stub, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_worker(natsd.url, stub.url):
        async with running_router(natsd.url) as router:
            await dispatching(router)
            await with_workers(router, 1)
            monkeypatch.setattr(router._feedback, "_start", lambda work: work.close())
            stub.scripts.append(Script([ollama_done()]))
            await answered(router)
            assert await judged(bus) == []
            await bus.api("STREAM.PURGE.KV_router", {"filter": "$KV.router.snapshot"})
        await bus.api("STREAM.PURGE.KV_router", {"filter": "$KV.router.snapshot"})
        for _ in range(2):
            async with running_router(natsd.url) as router:
                await dispatching(router)
                await signals(bus, "empty")
                log: list[AnyEvent] = await whole_log(bus)
                await bus.api("STREAM.PURGE.KV_router", {"filter": "$KV.router.snapshot"})
        assert len([event for event in log if isinstance(event, QualityJudged)]) == 1


async def test_of_two_routers_the_dispatcher_says_the_signals_and_either_takes_a_rating(
    natsd: EmbeddedServer, router: RouterService, stub: Stub, bus: Bus
) -> None:
    async with running_router(natsd.url, "r2") as other, over_http(other) as http:
        await with_workers(other, 1)
        stub.scripts.append(Script([ollama_done()]))
        empty = await answered(other, text="one")
        await answered(other, text="two")
        await answered(other, text="two")
        found = await signals(bus, "empty", "asked_again")
        assert {event.by for event in found} == {"r1"}
        assert (await http.post("/feedback", json={"task": empty, "rating": -1})).status_code == 200
        assert [event.by for event in await judged(bus) if event.source == "thumb"] == ["r2"]
