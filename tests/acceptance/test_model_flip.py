"""Two models on one machine, over the real HTTP: new facts of one kind flip the choice, and the words name that kind.

The facts go into EVENTS; projector, KV and router do the rest. The margins hold however busy this machine is, since what others
use of it counts (by up to a factor of four).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from schemas.events import Event, QualityJudged, TaskCompleted, TaskRouted, Times, Tokens
from services.router.explain import compare
from services.runtime.bus import Bus
from services.runtime.ids import new_id
from support.eventually import eventually
from support.proving import Json, Proof, stub_fleet
from support.stub_server import Pace

ASK: dict[str, Any] = {"prompt": "Write a function that sorts a list.", "domain": "code", "max_tokens": 200}
MODELS = ("quick", "clever")


@pytest.fixture
async def proof(tmp_path: Path) -> AsyncIterator[Proof]:
    async with stub_fleet(tmp_path, {"desk": {name: Pace() for name in MODELS}}) as (started, _):
        await publish(started, [*await speed(started, "quick", 60.0), *await speed(started, "clever", 40.0)])
        await publish(started, [*quality("quick", 0.80), *quality("clever", 0.80)])
        yield started


async def speed(proof: Proof, model: str, tokens_s: float, n: int = 40) -> list[Event]:
    worker = (await proof.workers())["desk"]["id"]
    return [
        TaskCompleted(
            id=new_id(), at=0.0, by=worker, task=new_id(), attempt=1, worker=worker, boot="told", model=model,
            domain="code", resident=True, others_use=0.0, finish_reason="stop",
            tokens=Tokens(prompt=100, cached=0, output=200),
            times=Times(prefill_s=0.1, decode_s=200 / tokens_s, total_s=0.1 + 200 / tokens_s, source="backend"),
        )
        for _ in range(n)
    ]  # fmt: skip


def quality(model: str, value: float, n: int = 40) -> list[Event]:
    return [
        QualityJudged(id=new_id(), at=0.0, by="judge", model=model, domain="code", source="check", value=value)
        for _ in range(n)
    ]


async def publish(proof: Proof, events: Iterable[Event]) -> None:
    """Stored, folded, and known to the router."""
    async with await Bus.connect(proof.stack.nats_url, name="teller") as bus:
        for event in events:
            last = (await bus.publish_event(event, event.id)).seq

    async def known() -> bool:
        answer = await proof.http.get("/route/preview", params=ASK)
        return bool(answer.json()["position"] >= last)

    await eventually(known)


async def preview(proof: Proof) -> Json:
    answer: Json = (await proof.http.get("/route/preview", params=ASK)).json()
    return answer


async def decided(proof: Proof) -> TaskRouted:
    """The decision that a real task of this kind gets now, from its explanation."""
    task = await proof.submit(**ASK)
    await proof.ended(task)
    (found,) = await proof.said(TaskRouted, task)
    assert (await proof.http.get(f"/explain/{task}")).json()["decision"]["id"] == found[1].id
    return found[1]


def rate(shown: Json, model: str, field: str) -> float:
    return float(next(c[field]["value"] for c in shown["candidates"] if c["model"] == model))


async def test_a_worse_quality_alone_flips_the_choice_and_is_named(proof: Proof) -> None:
    before, routed = await preview(proof), await decided(proof)
    assert before["choice"]["model"] == "quick"
    await publish(proof, quality("quick", 0.50, 80))
    after = await preview(proof)
    assert after["choice"]["model"] == "clever"
    for model in MODELS:
        assert rate(after, model, "decode") == pytest.approx(rate(before, model, "decode"), rel=0.05)
    assert "(lower quality " in " ".join(after["words"])
    line = compare(routed, await decided(proof))[0]
    assert "What did it: quick" in line and "quality" in line
    print(f"\n{line}")


async def test_a_better_speed_alone_flips_the_choice_and_is_named(proof: Proof) -> None:
    before, routed = await preview(proof), await decided(proof)
    assert before["choice"]["model"] == "quick"
    await publish(proof, await speed(proof, "clever", 150.0, 120))
    after = await preview(proof)
    assert after["choice"]["model"] == "clever"
    for model in MODELS:
        assert rate(after, model, "quality") == rate(before, model, "quality")
    line = compare(routed, await decided(proof))[0]
    assert "What did it: " in line and "decode" in line and "quality" not in line
    print(f"\n{line}")
