"""Ollama's own clients against the router and against a real Ollama: the same results. ``make e2e-ollama``.

The official command line client and Python library know nothing of Headrace; two real Ollama servers are its machines.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import ollama
import pytest
import pytest_asyncio

from services.cli.parts import BackendAt
from services.cli.stack import Stack
from support.docker import Unavailable
from support.eventually import eventually
from support.ollama import MODEL, OllamaServer, ollama as serve_ollama, ollama_command

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="module")]

SHORT = {"num_predict": 8, "temperature": 0.0, "seed": 1}
HI = [{"role": "user", "content": "What is the capital of Japan?"}]


DIFFERENT = {
    "bad option": (400, 500),  # a client's mistake is never a 5xx here
    "embed": ([], [576, 576]),  # only what calls itself an embedding model embeds; newer Ollamas refuse the others too
}
"""docs/http/ollama.md, "What is different": (the router's, Ollama's)."""


class Site(NamedTuple):
    url: str
    machines: dict[str, OllamaServer]
    home: Path

    @property
    def both(self) -> dict[str, str]:
        """The router, and an Ollama by itself."""
        return {"router": self.url, "ollama": self.machines["one"].url}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    async with AsyncExitStack() as running:
        try:
            machines = {name: running.enter_context(serve_ollama()) for name in ("one", "two")}
        except Unavailable as reason:
            pytest.skip(str(reason))
        backends = [BackendAt(name, machine.url, folder=name) for name, machine in machines.items()]
        whole = await running.enter_async_context(Stack(folder / "data", backends=backends, sync="10s"))
        yield Site(whole.router_url, machines, folder)


async def typed(site: Site, where: str, *words: str) -> subprocess.CompletedProcess[str]:
    """The real command line client."""
    env = {**os.environ, "OLLAMA_HOST": where, "HOME": str(site.home)}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ollama_command(), *words], env=env, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL
        )

    return await asyncio.to_thread(run)


async def test_list_shows_the_fleet_and_its_routes(site: Site) -> None:
    done = await typed(site, site.url, "list")
    names = [line.split()[0] for line in done.stdout.splitlines()[1:]]
    assert (done.returncode, names) == (0, ["auto", MODEL]), done.stderr
    bare = await typed(site, site.both["ollama"], "list")
    rows = {line.split()[0]: line.split()[1:4] for line in (done.stdout + bare.stdout).splitlines() if MODEL in line}
    assert rows[MODEL] == bare.stdout.splitlines()[1].split()[1:4]  # digest and size


@pytest.mark.parametrize("model", [MODEL, MODEL.removesuffix(":latest"), "auto"])
async def test_run_prints_an_answer(site: Site, model: str) -> None:
    done = await typed(site, site.url, "run", model, "Say hello in one word.")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


async def test_a_conversation_in_a_terminal(site: Site) -> None:
    """`ollama run` without a prompt: it loads the model with an empty request, then chats."""
    main, other = pty.openpty()
    env = {**os.environ, "OLLAMA_HOST": site.url, "HOME": str(site.home), "TERM": "dumb"}
    process = subprocess.Popen([ollama_command(), "run", MODEL], env=env, stdin=other, stdout=other, stderr=other)
    os.close(other)
    said = bytearray()

    async def until(words: bytes) -> None:
        async with asyncio.timeout(90):
            while words not in said:
                said.extend(await asyncio.to_thread(os.read, main, 4096))

    try:
        await until(b"Send a message")
        os.write(main, b"/set parameter num_predict 8\r/set verbose\rSay hello.\r")
        await until(b"eval rate")  # what it works out of our durations
        os.write(main, b"/bye\r")
        assert await asyncio.to_thread(process.wait, 30) == 0
    finally:
        process.kill()
        os.close(main)
    assert b"eval count" in said and b"Error" not in said


async def test_run_of_an_unknown_model_fails_as_it_does_at_an_ollama(site: Site) -> None:
    done = await typed(site, site.url, "run", "no-such-model", "Hello")
    assert done.returncode != 0
    assert "Error" in done.stderr and "name the machine" in done.stderr  # it tries to pull, and two machines could


async def test_show_and_ps_and_stop_work_unchanged(site: Site) -> None:
    shown = await typed(site, site.url, "show", MODEL)
    assert shown.returncode == 0, shown.stderr
    assert "context length" in shown.stdout and "completion" in shown.stdout
    async with ollama.AsyncClient(host=site.url) as client:
        await client.chat(MODEL, HI, options=SHORT)

    async def loaded() -> str | None:
        done = await typed(site, site.url, "ps")
        return done.stdout if MODEL in done.stdout else None

    said = str(await eventually(loaded, within_s=30, every_s=0.5))
    assert "100% CPU" in said and "from now" in said, said  # the machine's own words; "Forever" is nobody's
    assert (await typed(site, site.url, "stop", MODEL)).returncode == 0
    assert (await typed(site, site.url, "rm", MODEL)).returncode != 0


async def test_the_official_client_gets_the_same_from_both(site: Site) -> None:
    seen = {name: await tour(url) for name, url in site.both.items()}
    different = {
        key: (value, seen["ollama"][key]) for key, value in seen["router"].items() if value != seen["ollama"][key]
    }
    assert different == DIFFERENT


async def tour(url: str) -> dict[str, Any]:
    """What a program can observe, without what differs between two runs of one server."""
    seen: dict[str, Any] = {}
    async with ollama.AsyncClient(host=url, timeout=120) as client:
        whole = await client.chat(MODEL, HI, options=SHORT)
        seen["chat"] = (whole.model, whole.message.role, whole.message.content, whole.done_reason, whole.eval_count)
        seen["chat figures"] = {
            name for name, value in whole.model_dump().items() if name.endswith(("_duration", "_count")) and value
        } - {"load_duration", "prompt_eval_count", "prompt_eval_duration"}
        parts = [part async for part in await client.chat(MODEL, HI, options=SHORT, stream=True)]
        seen["stream"] = ("".join(part.message.content or "" for part in parts), [part.done for part in parts][-1])
        made = await client.generate(MODEL, "The sky is", raw=True, options=SHORT)
        seen["raw"] = (made.response, made.done_reason)
        stopped = await client.generate(MODEL, "Count from one to ten.", options={**SHORT, "stop": [" "]})
        seen["stop"] = (" " in stopped.response, stopped.done_reason)
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        form = await client.chat(MODEL, HI, format=schema, options={**SHORT, "num_predict": 60})
        seen["schema"] = isinstance(json.loads(form.message.content or "")["city"], str)
        seen["load"] = (await client.chat(MODEL, [])).done_reason
        seen["embed"] = [len(vector) for vector in (await refusing(client.embed(MODEL, ["a", "b"]), "embeddings"))]
        for name, call in {
            "unknown": client.chat("no-such-model", HI),
            "unknown generate": client.generate("no-such-model", "Hi"),
            "unknown show": client.show("no-such-model"),
            "bad option": client.chat(MODEL, HI, options={"temperature": "hot"}),
            "think": client.chat(MODEL, HI, think=True),
            "tools": client.chat(MODEL, HI, tools=[{"type": "function", "function": {"name": "f"}}]),
        }.items():
            seen[name] = await status_of(call)
    return seen


async def refusing(call: Any, field: str) -> Any:
    """A field of the reply, or nothing where it is refused."""
    try:
        return getattr(await call, field)
    except ollama.ResponseError:
        return []


async def status_of(call: Any) -> int:
    try:
        await call
    except ollama.ResponseError as error:
        return error.status_code
    return 200


async def test_case_27_on_the_real_ollama_two_windows_load_the_model_once(site: Site) -> None:
    """Its runners are processes: a load is a new one."""

    async def both_windows() -> None:
        async with ollama.AsyncClient(host=site.url, timeout=120) as client:
            for num_ctx in (512, 1024) * 2:
                await client.chat(MODEL, HI, options={**SHORT, "num_ctx": num_ctx})

    await both_windows()  # both machines may load it for the first time
    before = {name: runners(machine) for name, machine in site.machines.items()}
    await both_windows()
    assert {name: runners(machine) for name, machine in site.machines.items()} == before
    bare = site.machines["one"]
    async with ollama.AsyncClient(host=bare.url, timeout=120) as client:  # what would have happened
        await client.chat(MODEL, HI, options={**SHORT, "num_ctx": 512})
        first = runners(bare)
        await client.chat(MODEL, HI, options={**SHORT, "num_ctx": 1024})
    assert runners(bare) != first


def runners(machine: OllamaServer) -> list[int]:
    return sorted(process.pid for process in machine.runners())


async def test_a_pull_reaches_the_machine_that_is_named(site: Site) -> None:
    """There is no registry here, so its own error comes back, through the router, in Ollama's form."""
    asked = {"model": "no.example/a/b", "worker": "two"}
    async with httpx.AsyncClient(base_url=site.url, trust_env=False, timeout=60) as http:
        reply = await http.post("/api/pull", json=asked)
    *words, last = (json.loads(line) for line in reply.content.splitlines())
    assert words[0]["status"] == "pulling manifest"
    assert "no.example" in last["error"]
