"""A whole Headrace as real processes over stub machines, each of which says of itself what the test wants.

Answers "how would this fleet be served?" where a story needs a known load, a silent machine, slots of its own or limits.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from schemas.codec import decode
from schemas.events import Event, QualityJudged, TaskCompleted, Times, Tokens, WorkerLoad
from schemas.subjects import heartbeat_subject
from services.cli.parts import BackendAt, Surroundings, benchmarker_part, worker_part
from services.cli.stack import Stack
from services.runtime.bus import Bus
from services.runtime.ids import new_id
from services.runtime.settings import Benchmarker
from support.eventually import eventually
from support.proving import Json, Proof
from support.stub_ollama import StubOllama
from support.stub_server import StubServer


class Machine(NamedTuple):
    """``use`` is what its worker says that others use of it; None says nothing at all about itself."""

    server: StubServer | StubOllama
    use: float | None = 0.0
    slots: int = 1


@asynccontextmanager
async def told_fleet(data: Path, machines: Mapping[str, Machine], settings: str = "") -> AsyncIterator[Proof]:
    """``settings`` is TOML for every part. All workers are ready, with all their slots free."""
    config = data / "headrace.toml"
    config.write_text(settings)
    async with AsyncExitStack() as running:
        for server in {id(machine.server): machine.server for machine in machines.values()}.values():
            await running.enter_async_context(server)
        stack = await running.enter_async_context(Stack(data / "fleet", sync="10s", config=config, restart=False))
        around = Surroundings(data / "fleet", stack.nats_url, stack.router_url, config)
        parts = []
        for name, machine in machines.items():
            part = worker_part(around, BackendAt(name, machine.server.url, name))
            told = {
                "OTHERS_USE": str(say_use(data, name, machine.use)),
                "HEADRACE_WORKER_SLOTS": str(machine.slots),
                "HEADRACE_WORKER_HEARTBEAT_S": "0.5",
                "PYTHONPATH": str(Path(__file__).parents[1]),
            }
            parts.append(
                dataclasses.replace(part, module="support.told_load", environment={**part.environment, **told})
            )
        await stack.supervisor.start(parts)
        running.push_async_callback(stack.supervisor.stop)  # workers before their servers
        proof = Proof(stack)
        running.push_async_callback(proof.http.aclose)
        await proof.quiet()
        yield proof


async def measuring(proof: Proof, data: Path) -> None:
    """Start the benchmarker of a told fleet, now and not before: what happened until then is its past."""
    around = Surroundings(data / "fleet", proof.stack.nats_url, proof.stack.router_url, data / "headrace.toml")
    await proof.stack.supervisor.start([benchmarker_part(around, Benchmarker())])


async def probed(proof: Proof, machine: str) -> list[TaskCompleted]:
    """The probes that it has completed."""
    worker, log = (await ids(proof))[machine], await proof.log()
    found = [entry.event for entry in log if isinstance(entry.event, TaskCompleted)]
    return [event for event in found if event.kind == "bench" and event.worker == worker]


def say_use(data: Path, machine: str, use: float | None) -> Path:
    """From its next heartbeat on, the machine says that others use this much of it."""
    told, new = data / f"{machine}.use", data / f"{machine}.use.new"
    new.write_text("" if use is None else str(use))
    return new.replace(told)


async def chat(proof: Proof, prompt: str = "Why is the sky blue?", **asked: Any) -> tuple[str, str]:
    """(name of the machine, text) of a whole answer over OpenAI's API: no polling, as clients wait."""
    body = {"model": "auto", "max_tokens": 8, "messages": [{"role": "user", "content": prompt}], **asked}
    answer = await proof.http.post("/v1/chat/completions", json=body)
    answer.raise_for_status()
    found: Json = answer.json()
    return str(found["headrace"]["worker_name"]), str(found["choices"][0]["message"]["content"])


async def chats(proof: Proof, count: int, *, at_once: int, **asked: Any) -> list[str]:
    """The machines that answered ``count`` requests of ``at_once`` clients that each wait for their answer. A single client
    waits until all slots are known to be free again, so that each of its requests has the whole fleet to choose from."""
    left, machines = list(range(count)), []

    async def client() -> None:
        while left:
            machines.append((await chat(proof, f"Tell me about the moon, part {'x' * left.pop()}.", **asked))[0])
            if at_once == 1:
                await proof.quiet()

    await asyncio.gather(*(client() for _ in range(at_once)))
    return machines


async def warmed(proof: Proof, *names: str, each: int = 1, **asked: Any) -> int:
    """Each machine has answered ``each`` times, and the router knows what that taught. How many requests it took."""
    for name in names:
        for _ in range(each):
            await chat(proof, headrace={"worker": name}, **asked)
    await known(proof)
    await beats(proof, 2)
    await proof.quiet()
    return each * len(names)


async def known(proof: Proof) -> None:
    """Until the router's statistics reach the end of each answer so far."""
    log = await proof.log()
    last = max((e.seq for e in log if isinstance(e.event, TaskCompleted | QualityJudged)), default=0)

    async def reached() -> bool:
        position = (await proof.http.get("/stats")).json()["position"]
        assert position >= last, f"the statistics reach {position} of {last}"
        return True

    await eventually(reached)


async def beats(proof: Proof, count: int) -> None:
    """Each machine has sent so many heartbeats from now on: by then its pulls stand at the price of what is known now."""
    async with await Bus.connect(proof.stack.nats_url, name="beats") as bus:

        async def seqs() -> dict[str, int]:
            found = {}
            for worker in (await ids(proof)).values():
                stored = await bus.last_for("HEARTBEATS", heartbeat_subject(worker))
                load = None if stored is None else decode(stored.data)
                found[worker] = load.seq if isinstance(load, WorkerLoad) else 0
            return found

        first = await seqs()

        async def later() -> bool:
            now = await seqs()
            assert all(seq >= first.get(worker, 0) + count for worker, seq in now.items()), f"{now} after {first}"
            return True

        await eventually(later, every_s=0.1)


async def tell(proof: Proof, *events: Event) -> None:
    """Facts of a past that nobody has time to live through, stored, folded, and known to the router."""
    async with await Bus.connect(proof.stack.nats_url, name="teller") as bus:
        await asyncio.gather(*(bus.publish_event(event, event.id) for event in events))
    await known(proof)
    await beats(proof, 2)


def ran(
    worker: str, model: str, tokens_s: float, *, domain: str = "code", n: int = 1, tokens: int = 100
) -> list[Event]:
    """``n`` past answers at this speed."""
    times = Times(prefill_s=0.01, decode_s=tokens / tokens_s, total_s=0.01 + tokens / tokens_s, source="backend")
    return [
        TaskCompleted(
            id=new_id(), at=0.0, by=worker, task=new_id(), attempt=1, worker=worker, boot="told", model=model,
            domain=domain, resident=True, others_use=0.0, finish_reason="stop",
            tokens=Tokens(prompt=100, cached=0, output=tokens), times=times,
        )
        for _ in range(n)
    ]  # fmt: skip


def judged(model: str, value: float, *, worker: str | None = None, domain: str = "code", n: int = 1) -> list[Event]:
    return [
        QualityJudged(
            id=new_id(), at=0.0, by="judge", model=model, domain=domain, worker=worker, source="check", value=value
        )
        for _ in range(n)
    ]


async def ids(proof: Proof) -> dict[str, str]:
    """Machine's name -> worker's id."""
    return {name: str(worker["id"]) for name, worker in (await proof.workers()).items()}


async def preview(proof: Proof, **asked: Any) -> Json:
    answer = await proof.http.get("/route/preview", params={"prompt": "Sort a list.", "domain": "code", **asked})
    answer.raise_for_status()
    found: Json = answer.json()
    return found


def candidate(shown: Json, machine: str, model: str | None = None) -> Json:
    """Its row of a preview."""
    rows = [row for row in shown["candidates"] if row["worker_name"] == machine and model in (None, row["model"])]
    assert rows, f"{machine} is not among {shown['candidates']}"
    found: Json = rows[0]
    return found
