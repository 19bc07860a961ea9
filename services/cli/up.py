"""``headrace up``: everything on this machine, until Ctrl-C.

Answers "how do I start it?". Puts a worker beside each local model server it finds, also those that start later; says one line
per part; leaves nothing running.
"""

from __future__ import annotations

import asyncio
import errno
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.text import Text

from services.cli import demo
from services.cli.ask import machine_names
from services.cli.client import DEFAULT_ROUTER, RouterClient
from services.cli.exits import CommandFailed
from services.cli.fleet_process import DemoFleet
from services.cli.join_code import JoinCode, address_here, fleet_secret
from services.cli.joining import ModelServers
from services.cli.parts import EVERYWHERE
from services.cli.stack import Stack
from services.cli.supervision import Say
from services.runtime.server import LOOPBACK, Sync

STOPPING = "stopping: workers finish what they have; a second Ctrl-C stops at once"
ASK_S = 1.0
"""Who pressed Ctrl-C is told at once or not at all."""
NAMED_MAX = 3
PORT_VARIABLE = "HEADRACE_NATS_PORT"
TRY_ANOTHER = "is Headrace up already? try `headrace fleet`, or `headrace up --port N`"


class Terminal(NamedTuple):
    """Where a run speaks, and with which settings file."""

    console: Console
    say: Say
    config: Path | None = None


class Listen(NamedTuple):
    """Where the router listens, and whether it has keys. With ``nats_port`` workers of other machines may join there."""

    host: str
    port: int
    has_keys: bool = False
    nats_port: int | None = None


async def up(data: Path, *, backends: Sequence[str], listen: Listen, sync: Sync, around: Terminal) -> None:
    """Runs until it is cancelled. ``backends`` come on top of those found on this machine's default ports."""
    refuse_taken_port(listen.port, listen.host)
    started = time.monotonic()
    servers = ModelServers(around.say)
    await servers.look(backends)
    try:
        async with _stack(data, listen, sync, around) as stack:

            def ready() -> None:
                first = welcome(stack.router_url, time.monotonic() - started, bool(servers.known))
                around.console.print(Text.assemble(first, to_others(listen)), soft_wrap=True)
                if listen.nats_port is not None:
                    around.say(how_to_join(fleet_secret(data), listen.host, stack.nats.port))

            try:
                await servers.give_workers(stack.join_later, ready)
            finally:
                around.say(STOPPING)
                around.say(await in_hand(stack.router_url))
    finally:
        around.say("stopped, nothing is left running")


def _stack(data: Path, listen: Listen, sync: Sync, around: Terminal) -> Stack:
    opened: dict[str, Any] = {}
    if listen.nats_port is not None:
        if listen.nats_port > 0:
            refuse_taken_port(listen.nats_port, listen.host, hint=f"[nats] port, or {PORT_VARIABLE}, names another")
        opened = {"nats_host": listen.host, "nats_port": listen.nats_port, "nats_secret": fleet_secret(data)}
    return Stack(
        data,
        sync=sync,
        router_host=listen.host,
        router_port=listen.port,
        config=around.config,
        benchmarker=True,
        say=around.say,
        **opened,
    )


async def up_demo(data: Path | None, *, port: int, stay: bool, sync: Sync, around: Terminal) -> demo.Json:
    """The demo's results. Its data are thrown away unless a directory was named."""
    refuse_taken_port(port)
    started = time.monotonic()
    await asyncio.to_thread(demo.get_parts, around.say)
    try:
        with _folder(data) as folder:
            async with DemoFleet(
                folder, sync=sync, router_port=port, config=around.config, benchmarker=True, say=around.say
            ) as fleet:
                around.say(f"all parts ready after {time.monotonic() - started:.1f} s")
                try:
                    results = await demo.run(fleet, around.console)
                    if stay:
                        around.console.print(
                            welcome(fleet.router_url, time.monotonic() - started, True), soft_wrap=True
                        )
                        await asyncio.Event().wait()
                except asyncio.CancelledError:
                    around.say(STOPPING)
                    around.say(await in_hand(fleet.router_url))
                    raise
    finally:
        around.say(f"stopped after {time.monotonic() - started:.1f} s, nothing is left running")
    if not stay:
        around.console.print(afterwards(), soft_wrap=True)
    return results


def afterwards() -> Text:
    """What to do after the demo. The same command as the one that ran it: after `make demo` it is on no PATH."""
    command = "headrace" if shutil.which("headrace") else f"{Path(sys.prefix).name}/bin/headrace"
    return Text(
        f"\nNext:\n  {command} up                 the same over your own Ollama, llama.cpp, LM Studio or vLLM\n"
        f"  {command} up --demo --stay   this demo again, to stay: ask it, look at it in a browser\n"
    )


async def in_hand(url: str) -> str:
    """What is waited for: the answers that machines are still making."""
    try:
        async with asyncio.timeout(ASK_S), RouterClient(url) as client:
            tasks = [task for task in (await client.get("/queue"))["tasks"] if task["state"] in ("released", "running")]
            names = await machine_names(client)
    except (CommandFailed, TimeoutError, KeyError):
        return "the router does not say what runs"
    if not tasks:
        return "no answer is being made"
    told = [f"{task.get('model')} on {names.get(str(task.get('worker')), 'its way')}" for task in tasks]
    more = f" and {len(told) - NAMED_MAX} more" if len(told) > NAMED_MAX else ""
    return f"{len(told)} {'answer is' if len(told) == 1 else 'answers are'} being made: {', '.join(told[:NAMED_MAX])}{more}"


def welcome(url: str, took_s: float, has_backends: bool) -> Text:
    """What a person can do now."""
    router = "" if url == DEFAULT_ROUTER else f" --router {url}"
    text = Text.assemble(("Headrace is up", "bold green"), f" after {took_s:.1f} s. Ctrl-C stops it.\n")
    if not has_backends:
        text.append(
            "No model server was found on this machine's default ports. Start Ollama, LM Studio, llama-server or vLLM: ",
            "yellow",
        )
        text.append("it joins by itself. For another address: headrace up --backend URL\n", "yellow")
    text.append(f"  ask it            headrace ask{router} 'What is a headrace?'\n")
    text.append(f"  see the machines  headrace fleet{router}\n")
    text.append(f"  look at it        {url}/\n")
    text.append(f"  OpenAI clients    {url}/v1\n")
    text.append("  in Open WebUI     headrace pipe --help\n")
    if shutil.which("headrace") is None:
        text.append(f"  `headrace` is not on your PATH; once per shell: . {sys.prefix}/bin/activate\n", "yellow")
    return text


def to_others(listen: Listen) -> Text:
    """Who else may ask or join, and how."""
    host, port, has_keys, nats_port = listen
    text = Text()
    if nats_port is None:
        text.append("  add a machine     headrace up --lan\n")
    if host in EVERYWHERE:
        text.append(f"  from elsewhere    http://{address_here()}:{port}/\n")
    if not has_keys and not host.startswith(("127.", "localhost", "::1")):
        text.append(
            "Whoever reaches that address may ask, without a key. To change that: headrace key add NAME\n", "yellow"
        )
    return text


def how_to_join(secret: str, host: str, nats_port: int) -> str:
    """The one line for every other machine."""
    code = JoinCode(secret, address_here() if host in EVERYWHERE else host, nats_port)
    return f"other machines join by: headrace join {code}"


def refuse_taken_port(port: int, host: str = LOOPBACK, *, hint: str = TRY_ANOTHER) -> None:
    """Before anything starts: a router that finds its port taken would only say so in its log."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise CommandFailed(
                    f"nobody can listen on {host}: {error.strerror}",
                    hint="--host 127.0.0.1 is for this machine alone, 0.0.0.0 for others too",
                ) from error
            raise CommandFailed(
                f"port {port} is taken: {error.strerror}",
                hint=hint,
            ) from error


@contextmanager
def _folder(data: Path | None) -> Iterator[Path]:
    if data is not None:
        yield data
        return
    with tempfile.TemporaryDirectory(prefix="headrace-demo-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
