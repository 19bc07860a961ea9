"""``headrace join``: this machine's model servers become part of a fleet whose router is on another one.

Answers "how do I add a machine?". Everything it needs is in the line that ``headrace up --lan`` prints; it finds the model
servers here, also those that start later, and leaves nothing running.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Annotated

import typer
from rich.text import Text

from schemas.errors import BusError
from services.cli.exits import CommandFailed, Exit
from services.cli.join_code import WHERE_FROM, JoinCode, joined_before, parse_code, remember
from services.cli.joining import ModelServers
from services.cli.output import console
from services.cli.parts import BackendAt, Surroundings, joined_worker_part
from services.cli.run_commands import Backends, Config, Data, speaker
from services.cli.supervision import Say, Supervisor, together
from services.runtime.bus import Bus
from services.runtime.nats_address import REFUSED
from services.runtime.server_conf import WORKER
from services.runtime.settings import load

LOOK_S = 1.0
"""How soon it is known that who came back is another fleet."""
REACH_S = 5.0
"""A server in the same house answers in milliseconds; one that woke for it in a few seconds."""


def join(
    code: Annotated[
        str | None,
        typer.Argument(help="What `headrace up --lan` printed; left out: what this machine joined by last."),
    ] = None,
    backend: Backends = None,
    name: Annotated[
        str | None,
        typer.Option("--name", help="What this machine is called in the fleet.", show_default="its host's name"),
    ] = None,
    data: Data = None,
    config: Config = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON: a line per part.")] = False,
) -> None:
    """Add this machine to the fleet of another one that runs `headrace up --lan`; its model servers are found."""
    from services.cli.interrupt import until_signal

    settings = load(config, os.environ)
    place = data or settings.data_dir
    known = parse_code(code) if code else joined_before(place)
    if known is None:
        raise CommandFailed(f"{place} has joined no fleet yet, so it takes a code", hint=WHERE_FROM, code=Exit.USAGE)
    terminal = console(quiet=json)
    named = backend or ([settings.worker.backend] if settings.worker.backend else [])
    around = Surroundings(place, f"nats://{known.place}", "", config, nats_user=WORKER, nats_password=known.secret)

    def ready(took_s: float, has_backends: bool) -> None:
        terminal.print(welcome(known, took_s, has_backends), soft_wrap=True)

    servers = ModelServers(say := speaker(terminal, json), here=name or settings.worker.name)
    asyncio.run(until_signal(stay(known, around, servers, named, say, ready)))


async def stay(
    code: JoinCode,
    around: Surroundings,
    servers: ModelServers,
    named: list[str],
    say: Say,
    ready: Callable[[float, bool], None],
) -> None:
    """Runs until it is cancelled."""
    started = time.monotonic()
    await servers.look(named)
    bus = await reach(code)
    remember(around.data, code)
    supervisor = Supervisor(say)

    async def put_beside(backend: BackendAt) -> None:
        await supervisor.add(joined_worker_part(around, backend))

    try:
        await together(
            servers.give_workers(put_beside, lambda: ready(time.monotonic() - started, bool(servers.known))),
            watch(bus, code, say),
        )
    finally:
        await bus.close()
        say("leaving: workers finish what they have; a second Ctrl-C leaves at once")
        await supervisor.stop()
        say("left, nothing is left running")


async def watch(bus: Bus, code: JoinCode, say: Say) -> None:
    """Says when the fleet goes and comes back, for which the workers wait by themselves. Raises CommandFailed when it comes back
    with another secret: then they would wait for ever."""
    lost = asyncio.Event()
    bus.on_disconnect(lost.set)
    if not bus.connected:
        lost.set()
    while True:
        await lost.wait()
        lost.clear()
        say(f"the fleet at {code.place} does not answer; its workers here join again when it does")
        while not await bus.wait_connected(LOOK_S):
            if bus.refused:
                raise CommandFailed(f"the fleet at {code.place} takes this code no more", hint=WHERE_FROM)
        say(f"in the fleet at {code.place} again")


async def reach(code: JoinCode) -> Bus:
    """A connection. Raises CommandFailed where the code leads nowhere, before anything is started."""
    try:
        return await Bus.connect(
            f"nats://{code.place}", name="join", user=WORKER, password=code.secret, timeout_s=REACH_S
        )
    except BusError as error:
        if error.code == REFUSED:
            raise CommandFailed(
                f"the fleet at {code.place} does not take this code", hint=f"was it copied whole? {WHERE_FROM}"
            ) from error
        raise CommandFailed(
            f"no fleet answers at {code.place} within {REACH_S:g} s",
            hint="is `headrace up --lan` running there, is the address right (the part after @), "
            f"and does a firewall let TCP port {code.port} in?",
            code=Exit.UNREACHABLE,
        ) from error


def welcome(code: JoinCode, took_s: float, has_backends: bool) -> Text:
    """What a person can do now."""
    text = Text.assemble(
        (f"Joined the fleet at {code.host}", "bold green"), f" after {took_s:.1f} s. Ctrl-C leaves it.\n"
    )
    if not has_backends:
        text.append(
            "No model server was found on this machine's default ports. Start Ollama, LM Studio, llama-server or vLLM: "
            "it joins by itself. For another address: --backend URL\n",
            "yellow",
        )
    text.append("  the next time     headrace join\n")
    text.append("  see it there      headrace fleet\n")
    return text
