"""Cases 17, 28, 29, 31, 32 and 33: what slow, stuck and odd Ollamas do to their clients, through the whole real Headrace.

Ollama stand-ins play the fault at once; router, workers, projector and nats-server are real processes, the client is OpenAI's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import openai
import pytest
import pytest_asyncio

from schemas.events import AttemptFailed, TaskCancelled
from services.cli.parts import BackendAt
from services.cli.stack import Stack
from support.backends import Gate, Hang, Script, Step, Stub, ollama_done, ollama_frame, ollama_stand_in
from support.eventually import PATIENCE_S, eventually
from support.proving import Proof, passed

pytestmark = pytest.mark.asyncio(loop_scope="module")

STALL_S, GRACE_S = 3.0, 0.2
"""Instead of 60 s and 10 s: what is tested are their ratios to what the servers and clients do."""
SLOW_S = 0.4 * STALL_S
"""A gap that is slow and not stuck, with more than a second to spare on a machine that has no core for anybody."""
SETTINGS = f"""
[router]
grace_s = {GRACE_S}
[worker]
heartbeat_s = 1.0
[worker.timeouts]
stall_s = {STALL_S}
"""
MODEL, BIG = "m:latest", "big:70b"
HI: list[Any] = [{"role": "user", "content": "Hi"}]
NDJSON = "application/x-ndjson"


class Site(NamedTuple):
    proof: Proof
    client: openai.AsyncOpenAI
    stubs: dict[str, Stub]

    async def chat(self, machine: str | None, **asked: Any) -> Any:
        pinned = {"extra_body": {"headrace": {"worker": machine}}} if machine else {}
        return await self.client.chat.completions.create(**({"model": MODEL, "messages": HI} | pinned | asked))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder: Path = tmp_path_factory.mktemp("site")
    config = folder / "headrace.toml"
    config.write_text(SETTINGS)
    async with AsyncExitStack() as running:
        stubs = {name: await running.enter_async_context(ollama_stand_in()) for name in ("one", "two")}
        backends = [BackendAt(name, stub.url, name) for name, stub in stubs.items()]
        stack = Stack(folder / "data", backends=backends, sync="10s", config=config, restart=False)
        await running.enter_async_context(stack)
        proof = Proof(stack)
        running.push_async_callback(proof.http.aclose)
        http = openai.DefaultAsyncHttpxClient(trust_env=False)
        client = openai.AsyncOpenAI(base_url=f"{stack.router_url}/v1", api_key="k", max_retries=0, http_client=http)
        await running.enter_async_context(client)
        yield Site(proof, client, stubs)


@pytest_asyncio.fixture(loop_scope="module")
async def site(whole: Site) -> Site:
    """With all slots free and nothing left to play."""
    await whole.proof.quiet()
    for stub in whole.stubs.values():
        stub.scripts = []
        stub.client_gone.clear()
    return whole


async def failures(site: Site, task: str) -> list[str]:
    return [event.failure for _, event in await site.proof.said(AttemptFailed, task)]


@asynccontextmanager
async def opening(gates: list[Gate], every_s: float) -> AsyncIterator[None]:
    """One gate after the other."""

    async def opener() -> None:
        for gate in gates:
            await passed(every_s)
            gate.opened.set()

    task = asyncio.create_task(opener())
    try:
        yield
    finally:
        task.cancel()


def paced(frames: list[bytes], gates: list[Gate]) -> list[Step]:
    """A gate before each frame."""
    return [step for pair in zip(gates, frames, strict=True) for step in pair]


# -- 17: a client's timeout ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streams", [False, True])
async def test_case_17_a_clients_short_timeout_closes_upstream_and_frees_the_slot(site: Site, streams: bool) -> None:
    """The client's time is up as soon as the server has its request: one that is up before that would prove nothing."""
    stub = site.stubs["one"]
    stub.scripts.append(Script([ollama_frame("a"), Hang()], 200, NDJSON))
    seen = len(stub.chats())
    before = len(await site.proof.log())

    async def asking() -> None:
        async for _ in await site.chat("one", stream=streams):
            pass

    waiting = asyncio.create_task(asking())
    await eventually(lambda: len(stub.chats()) > seen)
    waiting.cancel()
    await asyncio.wait_for(stub.client_gone.wait(), PATIENCE_S)
    await site.proof.quiet()
    (cancelled,) = [e.event for e in (await site.proof.log())[before:] if isinstance(e.event, TaskCancelled)]
    assert "went away" in cancelled.reason
    assert await failures(site, cancelled.task) == ["fenced"], "it was stopped, not stalled"
    assert (await site.chat("one")).choices[0].message.content


# -- 28: a cold start ------------------------------------------------------------------------------------------------------


async def test_case_28_one_cold_start_leaves_no_mark_on_the_speeds(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = site.stubs["two"]
    loaded = stub.pages["/api/ps"]
    monkeypatch.setitem(stub.pages, "/api/ps", {"models": []})
    await eventually(lambda: unloaded(site, "two"))
    cold = ollama_done(total_duration=20_700_000_000, load_duration=20_000_000_000)
    for n, end in enumerate((cold, ollama_done(), ollama_done())):
        stub.scripts.append(Script([ollama_frame("a"), end], 200, NDJSON))
        await site.chat("two", messages=[{"role": "user", "content": f"Hi {n}"}], extra_body=labelled("two", "cold"))
        if n == 0:  # a real server lists it by itself before it answers
            stub.pages["/api/ps"] = loaded
            await eventually(lambda: holds_in_memory(site, "two"))

    async def row() -> dict[str, Any] | None:
        rows = (await site.proof.http.get("/stats", params={"domain": "cold", "worker": "two"})).json().get("rows")
        return rows[0] if rows and rows[0]["ok_n"] == 3 else None

    fields = (await eventually(row) or {})["fields"]
    assert (fields["decode"]["n"], fields["decode"]["value"]) == (3, pytest.approx(10.0))
    assert (fields["prefill"]["n"], fields["prefill"]["value"]) == (3, pytest.approx(100.0))
    assert (fields["load"]["n"], fields["load"]["value"]) == (1, pytest.approx(20.0))


async def holds_in_memory(site: Site, machine: str) -> bool:
    return not await unloaded(site, machine)


async def unloaded(site: Site, machine: str) -> bool:
    """Whether the router knows by now that nothing is loaded there."""
    return bool((await site.proof.workers())[machine]["resident"] == [])


def labelled(machine: str, domain: str) -> dict[str, Any]:
    return {"headrace": {"worker": machine, "domain": domain}}


# -- 29: a load that takes longer than the client waits --------------------------------------------------------------------


class SlowDisk:
    """An Ollama that needs ``load_s`` to load its model, and aborts that when its client goes, as the real one does."""

    def __init__(self, stub: Stub, load_s: float) -> None:
        self.loads = self.aborted = 0
        self.loaded = False
        self._stub, self._load_s = stub, load_s
        stub.pages["/api/ps"] = lambda _: {"models": [{"name": BIG}] if self.loaded else []}
        stub._talk = self.talk

    def talk(self, path: str, body: dict[str, Any]) -> Script:
        if self.loaded:
            return Script([ollama_frame("ready"), ollama_done(model=BIG)], 200, NDJSON)
        gate = Gate()
        self.loads += 1
        self._stub.client_gone.clear()
        asyncio.get_running_loop().call_later(self._load_s, self._end_of_load, gate)
        return Script([gate, ollama_frame("ready"), ollama_done(model=BIG)], 200, NDJSON)

    def _end_of_load(self, gate: Gate) -> None:
        self.aborted += self._stub.client_gone.is_set()
        self.loaded = not self._stub.client_gone.is_set()
        gate.opened.set()


async def test_case_29_impatient_clients_do_not_keep_a_model_from_being_loaded(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits half as long as the load takes and tries again: the load outlives its client, and a later try is served."""
    stub = site.stubs["one"]
    monkeypatch.setattr(stub, "pages", dict(stub.pages))
    monkeypatch.setattr(stub, "_talk", stub._talk)
    disk = SlowDisk(stub, 3.0)
    await eventually(lambda: unloaded(site, "one"))
    tries = 0

    async def served() -> str | None:
        nonlocal tries
        tries += 1
        try:
            return str((await site.chat("one", model=BIG, timeout=1.5)).choices[0].message.content)
        except openai.APITimeoutError:
            return None

    assert await eventually(served) == "ready"
    assert (disk.loads, disk.aborted) == (1, 0)
    assert tries > 1


# -- 31: slow is not stuck -------------------------------------------------------------------------------------------------


async def test_case_31_a_slow_stream_passes(site: Site) -> None:
    """Gaps of less than half the stall limit, for longer than the limit."""
    gates = [Gate() for _ in range(4)]
    frames = [*(ollama_frame(word) for word in ("slow ", "but ", "steady")), ollama_done()]
    site.stubs["one"].scripts.append(Script(paced(frames, gates), 200, NDJSON))
    async with opening(gates, SLOW_S):
        stream = await site.chat("one", stream=True)
        said = "".join([chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices])
    assert said == "slow but steady"


# -- 32 and 33: thinking ---------------------------------------------------------------------------------------------------


async def test_case_32_an_answer_that_is_all_thinking_is_told_and_counted_as_empty(site: Site) -> None:
    frames = [ollama_frame("", thinking="hm "), ollama_done(done_reason="length", eval_count=2)]
    site.stubs["two"].scripts.append(Script(frames, 200, NDJSON))
    answer = await site.chat("two", extra_body=labelled("two", "thinking"))
    (choice,) = answer.choices
    assert (choice.message.content, choice.message.reasoning_content) == ("", "hm ")
    assert (choice.finish_reason, answer.headrace["outcome"]) == ("length", "empty")

    async def counted() -> dict[str, Any] | None:
        rows = (await site.proof.http.get("/stats", params={"domain": "thinking"})).json().get("rows")
        return rows[0] if rows else None

    row = await eventually(counted) or {}
    assert (row["ok_n"], row["fail_n"]) == (0, 1)


async def test_case_33_thinking_for_longer_than_every_idle_timer_is_an_answer(site: Site) -> None:
    """More than two stall limits of nothing but thinking, to a client that gives up after two of silence."""
    gates = [Gate() for _ in range(6)]
    thoughts = [ollama_frame("", thinking=f"{n} ") for n in range(4)]
    site.stubs["one"].scripts.append(Script(paced([*thoughts, ollama_frame("42"), ollama_done()], gates), 200, NDJSON))
    async with opening(gates, SLOW_S):
        deltas = []
        async for chunk in await site.chat("one", stream=True, timeout=openai.Timeout(PATIENCE_S, read=2 * STALL_S)):
            deltas += [choice.delta for choice in chunk.choices]
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == "0 1 2 3 "
    assert "".join(delta.content or "" for delta in deltas) == "42"


# -- 31: stuck is not slow; last, because a machine that got stuck rests ------------------------------------------------------


async def test_case_31_a_stuck_stream_is_told_as_an_error_and_runs_elsewhere_although_its_server_looks_well(
    site: Site,
) -> None:
    """Whichever machine gets it first hangs in mid-answer; ``/api/tags`` answers throughout."""
    once = [Script([ollama_frame("half an "), Hang()], 200, NDJSON)]
    for stub in site.stubs.values():
        stub.scripts = once
    chunks: list[Any] = []

    async def read() -> None:
        async for chunk in await site.chat(None, stream=True):
            chunks.append(chunk)  # noqa: PERF401 - what came before the error is wanted too

    with pytest.raises(openai.APIError, match="broke off"):
        await read()
    assert "".join(chunk.choices[0].delta.content for chunk in chunks) == "half an "
    task = chunks[0].id.removeprefix("chatcmpl-")
    (_, failed), *more = await site.proof.said(AttemptFailed, task)
    assert (failed.failure, more) == ("stall", [])
    end = await site.proof.ended(task)
    names = {worker["id"]: name for name, worker in (await site.proof.workers()).items()}
    stuck = names[str(failed.worker)]
    assert (end["status"]["state"], end["status"]["attempt"]) == ("completed", 2)
    assert end["worker_name"] != stuck
    assert site.stubs[stuck].client_gone.is_set()
    looks = [seen.path for seen in site.stubs[stuck].requests]
    assert "/api/tags" in looks[len(looks) - looks[::-1].index("/api/chat") :]
    assert (await site.proof.workers())[stuck]["state"] == "ready"
