"""The worker's shell on a real nats-server: what the router hears, and what the backend sees."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from schemas.events import AttemptFailed, Options, TaskCompleted, TaskFailed, TaskStarted, WorkerLeft, WorkerReported
from schemas.subjects import answer_subject, group_durable, lane_durable, start_id
from schemas.work import Answer, Body, Control, decode_wire
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from services.runtime.settings import Timeouts
from support.backends import Gate, Hang, Script, Stub, ollama_done, ollama_frame, ollama_stand_in
from support.eventually import eventually
from support.worker_bench import CLIENT, WORKER, Bench, models_of, running_worker

MODEL = "m:latest"


@pytest.fixture
async def stub() -> AsyncIterator[Stub]:
    async with ollama_stand_in() as server:
        yield server


@pytest.fixture
async def bench(bus: Bus) -> Bench:
    bench = Bench(bus)
    await bench.start()
    return bench


@pytest.fixture
async def ready(natsd: EmbeddedServer, bench: Bench, stub: Stub) -> AsyncIterator[Bench]:
    """A worker of one slot beside the stand-in, armed."""
    async with running_worker(natsd.url, stub.url):
        await bench.confirm(MODEL)
        await bench.ready()
        yield bench


def failed_by_router(task: str) -> AttemptFailed:
    return AttemptFailed(
        id=f"{task}-revoked", at=1.0, by="r", task=task, attempt=1, epoch=1, failure="not_started", retryable=True
    )


async def test_a_task_runs_from_its_item_to_its_stored_end(ready: Bench) -> None:
    await ready.release("t1", MODEL)
    end = await ready.until_said(TaskCompleted, "t1")
    started = await ready.until_said(TaskStarted, "t1")
    assert (started.worker, started.attempt, started.concurrency) == (WORKER, 1, 1)
    assert (end.outcome, end.finish_reason, end.tokens.output) == ("ok", "length", 8)
    assert (end.times.load_s, end.times.decode_s, end.times.source) == (0.1, 0.4, "backend")
    assert (end.digest, end.context, end.resident, end.backend) == ("d1" * 32, 4096, True, "ollama")
    assert end.prompt_chars == len("What is the capital of Japan?")
    stored = await ready.bus.last_for("TASKS", answer_subject(CLIENT, "t1", 1))
    assert stored is not None and end.answer is not None
    answer = decode_wire(stored.data, Answer)
    assert (answer.text, len(stored.data)) == ("".join(f"word{n} " for n in range(8)), end.answer.bytes)
    assert "".join(chunk.text for chunk in ready.tokens) == answer.text
    assert [chunk.index for chunk in ready.tokens] == list(range(len(ready.tokens)))
    await ready.ready()

    async def all_acked() -> bool:
        return await ready.unacked(MODEL) == (0, 0)

    await eventually(all_acked)


async def test_nothing_is_armed_before_a_router_confirms_a_consumer(
    natsd: EmbeddedServer, bench: Bench, stub: Stub
) -> None:
    async with running_worker(natsd.url, stub.url):
        await bench.until_said(WorkerReported)
        await eventually(lambda: len(bench.loads) > 1)
        assert {credit.free for credit in bench.credits} == {0}
        assert bench.credits[-1].armed == {}
        await bench.confirm(MODEL)
        credit = await bench.ready()
        assert set(credit.armed) == {group_durable("cpu_inference", MODEL), lane_durable(WORKER)}


async def test_a_consumer_confirmed_later_is_armed_too(ready: Bench) -> None:
    await ready.confirm("big:70b")
    credit = await ready.ready()
    assert group_durable("cpu_inference", "big:70b") in credit.armed


async def test_case_53_a_busy_worker_takes_no_second_item(ready: Bench, stub: Stub) -> None:
    gate = Gate()
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_done()]))
    await ready.release("first", MODEL)
    await ready.until_said(TaskStarted, "first")
    await ready.release("second", MODEL)
    busy = await eventually(
        lambda: next((c for c in ready.credits if c.running and c.running[0].phase == "decode"), None)
    )
    assert busy.free == 0
    assert group_durable("cpu_inference", MODEL) in busy.armed  # its pulls cover the group whenever they stand
    assert await ready.unacked(MODEL) == (1, 1)
    gate.opened.set()
    await ready.until_said(TaskCompleted, "first")
    await ready.until_said(TaskCompleted, "second")


async def test_case_17_a_cancel_closes_the_stream_upstream_and_frees_the_slot(ready: Bench, stub: Stub) -> None:
    stub.scripts.append(Script([ollama_frame("a"), Hang()]))
    await ready.release("t1", MODEL)
    await eventually(lambda: ready.tokens)
    await ready.tell(Control(command="cancel", task="t1", attempt=1))
    failure = await ready.until_said(AttemptFailed, "t1")
    assert (failure.failure, failure.retryable, failure.tokens) == ("fenced", False, 1)
    await stub.client_gone.wait()
    await ready.ready()


async def test_an_attempt_that_the_router_revoked_never_runs(ready: Bench, stub: Stub) -> None:
    await ready.bus.publish_event(failed_by_router("t1"), start_id("t1", 1))
    await ready.release("t1", MODEL)

    async def gone() -> bool:
        return await ready.unacked(MODEL) == (0, 0)

    await eventually(gone)
    await ready.ready()
    assert stub.chats() == []
    assert await ready.said(TaskStarted, "t1") == []


async def test_an_item_outside_its_permits_is_refused_and_not_run(ready: Bench, stub: Stub) -> None:
    await ready.release("t1", MODEL, holders=("somebody-else",))
    failure = await ready.until_said(AttemptFailed, "t1")
    assert (failure.failure, failure.retryable) == ("refused", True)
    await ready.ready()
    assert stub.chats() == []


async def test_the_loser_of_two_ends_says_that_it_was_fenced(ready: Bench, stub: Stub) -> None:
    gate = Gate()
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_done()]))
    await ready.release("t1", MODEL)
    await eventually(lambda: ready.tokens)
    other = TaskFailed(id="other", at=1.0, by="r", task="t1", epoch=2, failure="lost")
    await ready.bus.publish_event(other, "t1.end")
    gate.opened.set()
    failure = await ready.until_said(AttemptFailed, "t1")
    assert failure.failure == "fenced"
    assert await ready.said(TaskCompleted, "t1") == []
    await ready.ready()


async def test_case_31_a_stalled_stream_fails_while_the_backend_stays_up(
    natsd: EmbeddedServer, bench: Bench, stub: Stub
) -> None:
    stub.scripts.append(Script([ollama_frame("a"), Hang()]))
    async with running_worker(natsd.url, stub.url, timeouts=Timeouts(stall_s=0.3)):
        await bench.confirm(MODEL)
        await bench.ready()
        await bench.release("t1", MODEL)
        failure = await bench.until_said(AttemptFailed, "t1")
        assert (failure.failure, failure.retryable, failure.phase, failure.model) == ("stall", True, "decode", MODEL)
        await bench.ready(free=0)
        resting = await eventually(
            lambda: next((load for load in bench.loads if load.unreadable.get("credit.free")), None)
        )
        assert (resting.backend_up, resting.unreadable["credit.free"]) == (True, "takes no work: rest after stall")
        await bench.ready()  # it rests for 5 s, so that the next attempt is made elsewhere


async def test_case_32_an_answer_that_is_all_thinking_is_empty(ready: Bench, stub: Stub) -> None:
    frames = [
        ollama_frame("", thinking="hm "),
        ollama_frame("", thinking="hm"),
        ollama_done(done_reason="length", eval_count=2),
    ]
    stub.scripts.append(Script(frames))
    await ready.release("t1", MODEL)
    end = await ready.until_said(TaskCompleted, "t1")
    assert (end.outcome, end.finish_reason) == ("empty", "length")
    assert "".join(chunk.thinking for chunk in ready.tokens) == "hm hm"


async def test_an_answer_whose_client_named_no_limit_ends_at_the_owners_and_is_no_worse_for_it(
    natsd: EmbeddedServer, bench: Bench, stub: Stub
) -> None:
    async with running_worker(natsd.url, stub.url, max_tokens=5):
        await bench.confirm(MODEL)
        await bench.ready()
        await bench.release("t1", MODEL, options=Options())
        end = await bench.until_said(TaskCompleted, "t1")
    assert (end.outcome, end.finish_reason, end.tokens.output) == ("ok", "length", 5)


async def test_case_28_a_cold_load_is_no_part_of_the_speed(ready: Bench, stub: Stub) -> None:
    cold = ollama_done(total_duration=20_700_000_000, load_duration=20_000_000_000)
    stub.scripts.append(Script([ollama_frame("a"), cold]))
    await ready.release("t1", MODEL)
    times = (await ready.until_said(TaskCompleted, "t1")).times
    assert (times.load_s, times.prefill_s, times.decode_s) == (20.0, 0.2, 0.4)


async def test_a_repeated_prompt_of_unknown_caching_gives_no_prefill_time(ready: Bench) -> None:
    await ready.release("t1", MODEL)
    await ready.release("t2", MODEL)
    assert (await ready.until_said(TaskCompleted, "t1")).times.prefill_s == 0.2
    assert (await ready.until_said(TaskCompleted, "t2")).times.prefill_s is None


async def test_a_body_that_is_gone_is_the_requests_fault(ready: Bench) -> None:
    await ready.release("t1", MODEL)
    await ready.until_said(TaskCompleted, "t1")
    await ready.bus.api("STREAM.PURGE.TASKS", {"filter": "task.in.me.t1"})
    await ready.release("t1", MODEL, attempt=2)
    failure = await ready.until_said(AttemptFailed, "t1")
    assert (failure.failure, failure.retryable) == ("rejected", False)
    assert "gone" in failure.detail


async def test_texts_are_embedded_and_their_vectors_stored(ready: Bench) -> None:
    await ready.release("t1", MODEL, kind="embedding", body=Body(inputs=("four", "seventy")))
    end = await ready.until_said(TaskCompleted, "t1")
    assert (end.outcome, end.times.first_token_s, end.prompt_chars) == ("ok", None, 11)
    stored = await ready.bus.last_for("TASKS", answer_subject(CLIENT, "t1", 1))
    assert stored is not None
    assert decode_wire(stored.data, Answer).vectors == ((4.0, 1.0), (7.0, 1.0))


async def test_a_cancel_that_overtakes_the_run_is_kept(ready: Bench, stub: Stub) -> None:
    """Before the item: nothing to cancel yet. After the claim, before a token: the stream is closed, or never opened."""
    stub.scripts.append(Script([Hang()]))
    await ready.tell(Control(command="cancel", task="t1", attempt=1))
    await ready.release("t1", MODEL)
    await ready.until_said(TaskStarted, "t1")
    await ready.tell(Control(command="cancel", task="t1", attempt=1))
    assert (await ready.until_said(AttemptFailed, "t1")).failure == "fenced"
    await ready.ready()


async def test_a_backend_that_goes_away_takes_its_slots_with_it_and_brings_them_back(ready: Bench, stub: Stub) -> None:
    pages, stub.pages = stub.pages, {}
    down = await eventually(lambda: next((load for load in ready.loads if load.backend_up is False), None))
    assert "404" in down.unreadable["backend_up"]
    await ready.ready(free=0)
    stub.pages = pages
    await ready.ready(free=1)


async def test_a_new_model_is_reported_when_it_appears(ready: Bench, stub: Stub) -> None:
    first = await ready.until_said(WorkerReported)
    assert set(models_of(first)) == {MODEL, "big:70b"}
    stub.pages["/api/tags"]["models"].append({"name": "new:1b", "digest": "d9", "size": 5, "details": {}})

    async def reported() -> bool:
        return any("new:1b" in models_of(report) for report in await ready.said(WorkerReported))

    await eventually(reported)


async def test_pausing_takes_nothing_new_and_resuming_does(ready: Bench) -> None:
    await ready.tell(Control(command="pause"))
    await eventually(lambda: ready.credits[-1].free == 0)
    await ready.release("t1", MODEL)
    await ready.tell(Control(command="resume"))
    await ready.until_said(TaskCompleted, "t1")


async def test_draining_finishes_what_runs_and_says_goodbye(natsd: EmbeddedServer, bench: Bench, stub: Stub) -> None:
    gate = Gate()
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_done()]))
    async with running_worker(natsd.url, stub.url) as (_, life):
        await bench.confirm(MODEL)
        await bench.ready()
        await bench.release("t1", MODEL)
        await eventually(lambda: bench.tokens)
        life.drain("test")
        await eventually(lambda: bench.credits[-1].draining)
        gate.opened.set()
    await bench.until_said(TaskCompleted, "t1")
    events = await bench.events()
    assert isinstance(events[-1], WorkerLeft)


async def test_what_outlasts_the_drain_is_given_to_another_machine(
    ready: Bench, natsd: EmbeddedServer, stub: Stub
) -> None:
    async with ollama_stand_in() as other, running_worker(natsd.url, other.url, worker="w-2", drain_s=0.1):
        other.scripts.append(Script([ollama_frame("a"), Hang()]))
        await ready.confirm(MODEL, worker="w-2")
        await ready.ready(worker="w-2")
        await ready.release("t1", MODEL, lane="w-2")
        await eventually(lambda: ready.tokens)
    failure = await ready.until_said(AttemptFailed, "t1")
    assert (failure.failure, failure.retryable) == ("disconnect", True)
    assert other.client_gone.is_set()


async def test_a_killed_nats_server_costs_no_running_attempt(natsd: EmbeddedServer, ready: Bench, stub: Stub) -> None:
    gate = Gate()
    stub.scripts.append(Script([ollama_frame("a"), gate, ollama_frame("b"), ollama_done()]))
    await ready.release("t1", MODEL)
    await eventually(lambda: ready.tokens)
    await natsd.kill()
    gate.opened.set()
    await natsd.start()
    end = await ready.until_said(TaskCompleted, "t1")
    assert end.outcome == "ok"
    await ready.ready()
    assert len(await ready.said(TaskCompleted, "t1")) == 1


async def test_two_slots_run_two_attempts_and_say_so(natsd: EmbeddedServer, bench: Bench, stub: Stub) -> None:
    gates = [Gate(), Gate()]
    stub.scripts += [Script([ollama_frame("a"), gate, ollama_done()]) for gate in gates]
    async with running_worker(natsd.url, stub.url, slots=2):
        await bench.confirm(MODEL)
        await bench.ready(free=2)
        await bench.release("t1", MODEL)
        await bench.until_said(TaskStarted, "t1")
        await bench.release("t2", MODEL)
        assert (await bench.until_said(TaskStarted, "t2")).concurrency == 2
        await eventually(lambda: {one.task for one in bench.credits[-1].running} == {"t1", "t2"})
        for gate in gates:
            gate.opened.set()
        await bench.until_said(TaskCompleted, "t1")
        await bench.until_said(TaskCompleted, "t2")
        await bench.ready(free=2)
