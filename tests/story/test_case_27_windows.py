"""Case 27: clients that ask for different windows destroy each other's speed, because Ollama loads a model anew for each.

The stand-in counts its loads as Ollama does: another ``num_ctx`` than the loaded one is a load. Asked directly, two clients make
it load for each request; through the whole real Headrace it loads once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import ollama

from services.cli.parts import BackendAt
from services.cli.stack import Stack
from support.eventually import PATIENCE_S, eventually
from support.proving import Proof
from support.stub_ollama import StubOllama
from support.stub_server import Pace

MODEL = "m:latest"
SMALL, LARGE = 4096, 32768
FAST = Pace(0.0, 0.001)


@asynccontextmanager
async def headrace(
    folder: Path, machines: dict[str, StubOllama], settings: str = ""
) -> AsyncIterator[tuple[ollama.AsyncClient, Proof]]:
    config = folder / "headrace.toml"
    config.write_text(f"[worker]\nheartbeat_s = 0.5\n{settings}")
    async with AsyncExitStack() as running:
        for machine in machines.values():
            await running.enter_async_context(machine)
        backends = [BackendAt(name, machine.url, name) for name, machine in machines.items()]
        stack = Stack(folder / "data", backends=backends, sync="10s", config=config, restart=False)
        await running.enter_async_context(stack)
        proof = Proof(stack)
        running.push_async_callback(proof.http.aclose)
        yield await running.enter_async_context(ollama.AsyncClient(host=stack.router_url, timeout=PATIENCE_S)), proof


async def ask(client: ollama.AsyncClient, num_ctx: int) -> str:
    """As the programs of the reports do: each with its own window, in every request."""
    options = {"num_ctx": num_ctx, "num_predict": 3}
    said = await client.chat(MODEL, [{"role": "user", "content": "Say three words"}], options=options, stream=True)
    return "".join([part.message.content or "" async for part in said])


async def in_turn(client: ollama.AsyncClient) -> None:
    for num_ctx in (SMALL, LARGE) * 3:
        assert await ask(client, num_ctx) == "w0 w1 w2 "


async def test_case_27_asked_directly_each_request_loads_the_model() -> None:
    """What the reports saw; and that the stand-in would notice."""
    async with StubOllama({MODEL: FAST}) as machine, ollama.AsyncClient(host=machine.url, timeout=PATIENCE_S) as client:
        await in_turn(client)
        assert machine.loads == [MODEL] * 6


async def test_case_27_clients_of_different_windows_do_not_reload_each_others_model(tmp_path: Path) -> None:
    machine = StubOllama({MODEL: FAST})
    async with headrace(tmp_path, {"desk": machine}) as (client, _):
        await in_turn(client)
    assert machine.loads == [MODEL]


async def test_case_27_a_window_that_turns_out_smaller_while_the_request_waits_is_taken(tmp_path: Path) -> None:
    """Nobody knows an Ollama's window before it has loaded the model: what was a wish then is one afterwards."""
    machine = StubOllama({MODEL: FAST})
    async with headrace(tmp_path, {"desk": machine}) as (client, proof):
        await eventually(lambda: window_is(proof, None))
        (await proof.http.post("/workers/desk/pause")).raise_for_status()
        asking = asyncio.create_task(ask(client, LARGE))
        await eventually(lambda: waits(proof))
        machine.resident.append(MODEL)
        machine.windows[MODEL] = None
        await eventually(lambda: window_is(proof, machine.context))
        (await proof.http.post("/workers/desk/resume")).raise_for_status()
        assert await asking == "w0 w1 w2 "


async def window_is(proof: Proof, context: int | None) -> bool:
    models = (await proof.http.get("/models")).json()["models"]
    return [model["context"] for model in models] == [context]


async def waits(proof: Proof) -> bool:
    return bool((await proof.http.get("/queue")).json()["tasks"])


async def test_case_27_the_window_that_is_set_is_the_one_of_all_requests(tmp_path: Path) -> None:
    machine = StubOllama({MODEL: FAST})
    async with headrace(tmp_path, {"desk": machine}, f'[models."{MODEL}"]\ncontext = 16384\n') as (client, _):
        await in_turn(client)
        (shown,) = [value for key, value in ((await client.show(MODEL)).modelinfo or {}).items() if "context" in key]
    assert machine.loads == [MODEL]
    assert (machine.window(MODEL), shown) == (16384, 16384)


async def test_case_27_a_large_window_is_asked_of_the_machine_that_has_it(tmp_path: Path) -> None:
    machines = {"narrow": StubOllama({MODEL: FAST}, context=SMALL), "wide": StubOllama({MODEL: FAST}, context=LARGE)}
    for machine in machines.values():
        machine.resident.append(MODEL)
        machine.windows[MODEL] = None
    async with headrace(tmp_path, machines) as (client, _):
        for _turn in range(4):
            await ask(client, LARGE)
    assert (len(machines["narrow"].asked), len(machines["wide"].asked)) == (0, 4)
    assert [machine.loads for machine in machines.values()] == [[], []]
