"""Comparisons on a real nats-server: many machines at once, each with a real worker beside a stand-in, over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest

from schemas.bias import Judge, Records
from schemas.events import QualityJudged, TaskCancelled, TaskReleased, TaskSubmitted
from schemas.evidence import divide, lane
from schemas.samples import UNIT, Sample, sample_of
from schemas.subjects import PROJECTOR_JUDGES, PROJECTOR_TASK
from services.router.dispatch.permits import Limit, Limits
from services.router.http.app import create_app
from services.router.http.serving import serving
from services.router.service import RouterService
from services.runtime.bus import Bus
from services.runtime.server import EmbeddedServer
from support.backends import OLLAMA_STREAMS, Hang, Script, Stub, ollama_done, ollama_frame
from support.eventually import PATIENCE_S, eventually
from support.routers import dispatching, running_router, whole_log
from support.worker_bench import running_worker

Talk = Callable[[str], Script]


def says(*words: str, **done: Any) -> Talk:
    return lambda model: Script(
        [
            *(
                ollama_frame(
                    word,
                )
                for word in words
            ),
            ollama_done(model=model, eval_count=len(words), **done),
        ]
    )


def machine(models: dict[str, Talk]) -> Stub:
    """An Ollama that holds these models, each of its own digest, and answers as told."""
    tags = [
        {
            "name": name,
            "digest": name.encode().hex().ljust(64, "0"),
            "size": 1_000_000,
            "details": {"quantization_level": "Q4_K_M"},
        }
        for name in models
    ]
    pages = {
        "/api/version": {"version": "0.33.0"},
        "/api/tags": {"models": tags},
        "/api/ps": {"models": [{"name": name, "size": 1, "size_vram": 0, "context_length": 4096} for name in models]},
        "/api/show": {"capabilities": ["completion"], "model_info": {}},
    }
    return Stub(pages, OLLAMA_STREAMS, lambda _path, body: models[body["model"]](body["model"]))


class House:
    """A router over these machines, and what came over HTTP."""

    def __init__(self, router: RouterService, http: httpx.AsyncClient, bus: Bus, stubs: dict[str, Stub]) -> None:
        self.router, self.http, self.bus, self.stubs = router, http, bus, stubs

    async def compare(self, **asked: Any) -> list[tuple[str, dict[str, Any]]]:
        async with self.http.stream("POST", "/compare", json={"prompt": "Which is best?", **asked}) as reply:
            assert reply.status_code == 200, await reply.aread()
            return [event async for event in events(reply)]

    async def log(self, kind: type[Any]) -> list[Any]:
        return [event for event in await whole_log(self.bus) if isinstance(event, kind)]


async def events(reply: httpx.Response) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    name = ""
    async for line in reply.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def of(happened: list[tuple[str, dict[str, Any]]], name: str) -> list[dict[str, Any]]:
    return [data for event, data in happened if event == name]


@asynccontextmanager
async def house(url: str, machines: dict[str, dict[str, Talk]], **options: Any) -> AsyncIterator[House]:
    async with AsyncExitStack() as running:
        stubs = {name: machine(models) for name, models in machines.items()}
        for stub in stubs.values():
            await stub.start()
            running.push_async_callback(stub.stop)
        router = await running.enter_async_context(running_router(url, **options))
        for name, stub in stubs.items():
            await running.enter_async_context(running_worker(url, stub.url, worker=name))
        await dispatching(router)
        held = {(name, model) for name, models in machines.items() for model in models}

        def there() -> bool:
            seen = {(w.id, m) for w in router.fleet().workers.values() if w.alive and w.fresh for m in w.models}
            return seen >= held

        await eventually(there)
        bus = await running.enter_async_context(await Bus.connect(url, name="test"))
        await bus.listen(PROJECTOR_TASK, lambda message: bus.nc.publish(message.reply, b'{"found": false}'))
        base = await running.enter_async_context(serving(create_app(router), "127.0.0.1", 0))
        http = await running.enter_async_context(
            httpx.AsyncClient(base_url=base, headers={"x-headrace-client": "me"}, timeout=PATIENCE_S)
        )
        yield House(router, http, bus, stubs)


TWO = {"fast": {"qwen3": says("blue ", "sky")}, "slow": {"qwen3": says("blue"), "llama3": says("grey")}}


async def test_every_machine_and_model_answers_and_its_times_stand_beside_what_was_predicted(
    natsd: EmbeddedServer,
) -> None:
    async with house(natsd.url, TWO) as here:
        happened = await here.compare()
        (opened,), ends, (done,) = of(happened, "compare"), of(happened, "end"), of(happened, "done")
        pairs = {(e["model"], e["worker"]) for e in opened["entries"]}
        assert pairs == {("qwen3", "fast"), ("qwen3", "slow"), ("llama3", "slow")}
        assert [e["entry"] for e in opened["entries"]] == [1, 2, 3]
        assert all(e["predicted"]["total_s"] > 0 for e in opened["entries"])
        assert {(e["entry"], e["status"]["worker"]) for e in ends} == {
            (e["entry"], e["worker"]) for e in opened["entries"]
        }
        spent = ends[0]["spent"]
        assert spent["took_s"] > 0 and spent["tokens_per_s"] > 0 and spent["cost_s"] is not None
        assert done["judged"] == []
        tasks: list[TaskSubmitted] = await here.log(TaskSubmitted)
        assert {(t.kind, t.urgency, t.parent, t.client) for t in tasks} == {
            ("compare", "batch", opened["compare"], "me")
        }
        assert {r.lane for r in await here.log(TaskReleased)} == {"fast", "slow"}
        after = (await here.http.get(f"/compare/{opened['compare']}")).json()
        assert (after["state"], [e["task"] for e in after["entries"]]) == (
            "ended",
            [e["task"] for e in opened["entries"]],
        )
        texts = {(e["model"], e["worker"]): e["answer"]["text"] for e in after["entries"]}
        assert texts == {("qwen3", "fast"): "blue sky", ("qwen3", "slow"): "blue", ("llama3", "slow"): "grey"}
        assert after["entries"][0]["spent"]["took_s"] == pytest.approx(
            next(e for e in ends if e["entry"] == 1)["spent"]["took_s"], abs=0.05
        )


async def test_a_chosen_few_answer_and_whoever_may_not_is_named_with_the_reason(natsd: EmbeddedServer) -> None:
    async with house(natsd.url, TWO) as here:
        await here.http.post("/workers/slow/pause")
        await eventually(lambda: here.router.fleet().workers["slow"].paused)
        opened = of(await here.compare(models=["qwen3"]), "compare")[0]
        assert [(e["model"], e["worker"]) for e in opened["entries"]] == [("qwen3", "fast")]
        assert [(r["model"], r["worker"]) for r in opened["removed"]] == [("qwen3", "slow")]
        assert "paused: takes no new work" in opened["removed"][0]["reason"]
        reply = await here.http.post("/compare", json={"prompt": "hi", "workers": ["slow"]})
        assert (reply.status_code, reply.json()["error"]["code"]) == (503, "busy")
        assert "llama3 on bench" in reply.json()["error"]["message"]


async def test_an_answer_that_is_all_thinking_is_shown_as_empty_and_one_that_fails_spoils_no_other(
    natsd: EmbeddedServer,
) -> None:
    def thinks(model: str) -> Script:
        return Script([ollama_frame(thinking="hm "), ollama_done(model=model, done_reason="length")])

    def fails(_model: str) -> Script:
        return Script([b'{"error": "no such template"}\n'], status=400)

    async with house(natsd.url, {"one": {"qwen3": thinks, "bad": fails, "llama3": says("yes")}}) as here:
        happened = await here.compare()
        by_model = {e["model"]: e["entry"] for e in of(happened, "compare")[0]["entries"]}
        ends = {e["entry"]: e for e in of(happened, "end")}
        assert ends[by_model["qwen3"]]["status"]["outcome"] == "empty"
        assert ends[by_model["bad"]]["status"]["state"] in ("failed", "dead")
        assert ends[by_model["bad"]]["spent"] is None
        assert ends[by_model["llama3"]]["answer"]["text"] == "yes"
        assert happened[-1][0] == "done"


async def test_machines_answer_at_once_and_limits_hold(natsd: EmbeddedServer) -> None:
    limits = Limits(client=Limit(default=1))
    async with house(natsd.url, TWO, limits=limits) as here:
        happened = await here.compare()
        assert len(of(happened, "end")) == 3
        running = most = 0
        for event in await whole_log(here.bus):
            kind = type(event).__name__
            running += (kind == "TaskReleased") - (kind == "TaskCompleted")
            most = max(most, running)
        assert most == 1


def hangs(_model: str) -> Script:
    return Script([ollama_frame("a"), Hang()])


async def test_a_machine_that_hangs_holds_up_no_other(natsd: EmbeddedServer) -> None:
    async with (
        house(natsd.url, {"a": {"m1": hangs}, "b": {"m2": says("x")}}) as here,
        here.http.stream("POST", "/compare", json={"prompt": "hi"}) as reply,
    ):
        end = await anext(data async for name, data in events(reply) if name == "end")
        assert end["answer"]["text"] == "x"


async def test_who_goes_away_leaves_nothing_running(natsd: EmbeddedServer) -> None:
    async with house(natsd.url, {"a": {"m1": hangs, "m2": hangs}, "b": {"m1": hangs}}) as here:
        async with here.http.stream("POST", "/compare", json={"prompt": "hi"}) as reply:
            async for name, _ in events(reply):
                if name == "token":
                    break

        async def cancelled() -> bool:
            return len(await here.log(TaskCancelled)) == 3

        await eventually(cancelled)
        assert {event.reason for event in await here.log(TaskCancelled)} == {"whoever compared went away"}
        await asyncio.wait_for(here.stubs["a"].client_gone.wait(), PATIENCE_S)


def judge_says(word: str) -> Talk:
    return says(json.dumps({"better": word}))


async def sound_judge(here: House, model: str) -> None:
    """The projector's word that this one was right about all known pairs."""
    digest = next(w.models[model].digest for w in here.router.fleet().workers.values() if model in w.models)
    record = msgspec.json.encode(Records(position=1, judges=(Judge(model=model, digest=digest, standing="sound"),)))
    await here.bus.listen(PROJECTOR_JUDGES, lambda message: here.bus.nc.publish(message.reply, record))


JUDGED = {"one": {"qwen3": says("blue sky"), "llama3": says("grey sky"), "gemma3": judge_says("tie")}}


async def test_a_judge_of_another_family_sees_each_pair_in_both_orders_and_is_recorded(natsd: EmbeddedServer) -> None:
    async with house(natsd.url, JUDGED) as here:
        await sound_judge(here, "gemma3")
        happened = await here.compare(models=["qwen3", "llama3"], judge=True)
        (judged,) = of(happened, "judged")
        assert (judged["judge"], judged["kin"], judged["picks"], judged["value"]) == (
            "gemma3",
            False,
            ["tie", "tie"],
            0.5,
        )
        asked = [seen for seen in here.stubs["one"].chats() if seen["model"] == "gemma3"]
        shown = [chat["messages"][-1]["content"] for chat in asked]
        first = [text.index("blue sky") < text.index("grey sky") for text in shown]
        assert sorted(first) == [False, True]
        found = await here.log(QualityJudged)
        assert [(e.source, e.judge, e.value, e.weight, e.by) for e in found] == [
            ("judge", "gemma3", 0.5, 1.0, "r1")
        ] * 2
        assert {e.model for e in found} == {e.peer for e in found} == {"qwen3", "llama3"}
        judges = [t for t in await here.log(TaskSubmitted) if t.bench is not None]
        assert {(t.kind, t.bench.purpose, t.domain.label) for t in judges} == {("compare", "judge", "judging")}
        after = (await here.http.get(f"/compare/{of(happened, 'compare')[0]['compare']}")).json()
        assert len(after["entries"]) == 2 and [v["judge"] for v in after["judged"]] == ["gemma3"]


async def test_a_judge_that_was_never_tested_or_cannot_be_read_counts_nothing_and_says_so(
    natsd: EmbeddedServer,
) -> None:
    house_of = {"one": {**JUDGED["one"], "gemma3": says("the first one, I think")}}
    async with house(natsd.url, house_of) as here:
        await sound_judge(here, "qwen3")
        judged = of(await here.compare(models=["qwen3", "llama3"], judge="gemma3"), "judged")[0]
        assert judged["picks"] == ["malformed", "malformed"] and judged["value"] is None
        assert "never tested on known pairs" in judged["words"]
        assert [(e.weight, e.picks) for e in await here.log(QualityJudged)] == [(0.0, ("malformed", "malformed"))] * 2


async def test_where_no_third_model_is_there_nobody_judges(natsd: EmbeddedServer) -> None:
    async with house(natsd.url, TWO) as here:
        await sound_judge(here, "qwen3")
        judged = of(await here.compare(judge=True), "judged")[0]
        assert judged["judge"] is None and "no third model" in judged["words"]
        assert await here.log(QualityJudged) == []


async def test_a_pick_is_two_facts_for_each_other_model_and_a_change_of_mind_replaces_them(
    natsd: EmbeddedServer,
) -> None:
    async with house(natsd.url, TWO) as here:
        opened = of(await here.compare(), "compare")[0]
        entries = {e["entry"]: e["model"] for e in opened["entries"]}
        grey = next(number for number, model in entries.items() if model == "llama3")
        blue = next(number for number, model in entries.items() if model == "qwen3")
        for number, again in ((grey, False), (grey, True), (blue, False)):
            reply = await here.http.post("/feedback", json={"compare": opened["compare"], "pick": number})
            assert (reply.status_code, reply.json()["again"]) == (200, again), reply.text
        found: list[QualityJudged] = await here.log(QualityJudged)
        assert [(e.model, e.peer, e.value, e.client) for e in found] == [
            ("llama3", "qwen3", 1.0, "me"),
            ("qwen3", "llama3", 0.0, "me"),
            ("qwen3", "llama3", 1.0, "me"),
            ("llama3", "qwen3", 0.0, "me"),
        ]
        assert len({(e.pair) for e in found}) == 1 and all(len(e.tasks) == 2 for e in found)
        for wrong in ({"compare": opened["compare"], "pick": 9}, {"compare": "nobody", "pick": 1}):
            assert (await here.http.post("/feedback", json=wrong)).status_code == 404, wrong


THREE = {"one": {"qwen3": says("blue")}, "two": {"llama3": says("grey")}, "three": {"gemma3": says("green")}}


async def test_another_pick_leaves_nothing_of_the_first_one_counted(natsd: EmbeddedServer) -> None:
    async with house(natsd.url, THREE) as here:
        opened = of(await here.compare(), "compare")[0]
        entries = {e["model"]: e["entry"] for e in opened["entries"]}

        async def pick(model: str) -> dict[str, Any]:
            asked = {"compare": opened["compare"], "pick": entries[model]}
            return (await here.http.post("/feedback", json=asked)).raise_for_status().json()  # type: ignore[no-any-return]

        async def counted() -> dict[tuple[str, str], float]:
            """Folded as the projector folds them."""
            log: list[QualityJudged] = await here.log(QualityJudged)
            samples = [sample_of(event, seq, seq) for seq, event in enumerate(log, 1)]
            cells: dict[str, list[Sample]] = {}
            for sample in samples:
                assert sample is not None
                cells.setdefault(sample.model, []).append(sample)
            standing = [s for cell in cells.values() for s in divide(cell).now if lane(s) == "quality"]
            return {(s.model, s.peer or ""): (s.quality_u or 0) / UNIT for s in standing}

        await pick("qwen3")
        assert await counted() == won("qwen3", "llama3", "gemma3")
        told = await pick("llama3")
        assert await counted() == won("llama3", "qwen3", "gemma3") and len(told["withdrawn"]) == 2

        async def is_shown() -> bool:
            """Once the router has folded what it was told."""
            shown = (await here.http.get(f"/compare/{opened['compare']}")).json()["judged"]
            assert {(row["first"], row["second"], row["value"]) for row in shown} == {
                (entries["llama3"], entries[other], 1.0) for other in ("qwen3", "gemma3")
            }
            return True

        await eventually(is_shown)
        assert (await pick("llama3"))["again"] and await counted() == won("llama3", "qwen3", "gemma3")
        told = await pick("qwen3")
        assert not told["again"] and await counted() == won("qwen3", "llama3", "gemma3")


def won(best: str, *others: str) -> dict[tuple[str, str], float]:
    return {(best, other): 1.0 for other in others} | {(other, best): 0.0 for other in others}


async def test_an_unknown_model_or_comparison_is_not_found(natsd: EmbeddedServer) -> None:
    async with house(natsd.url, TWO) as here:
        for asked in ({"models": ["qwen33"]}, {"judge": "qwen33"}):
            reply = await here.http.post("/compare", json={"prompt": "hi", **asked})
            assert (reply.status_code, reply.json()["error"]["nearest"]) == (404, ["qwen3", "llama3"][:1]), asked
        assert (await here.http.get("/compare/nobody")).status_code == 404
        assert (await here.http.post("/compare", json={"prompt": "hi", "workers": ["nobody"]})).status_code == 400
