"""The commands that run something: up, and each service alone.

Answers "what do I start?". A single service is run in place of this process, so that signals and exit codes are its own.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from services.cli.exits import CommandFailed, Exit
from services.cli.output import console, emit_json, err, out
from services.cli.parts import EVERYWHERE
from services.runtime.settings import load

PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
"""A service reads its own arguments, --help included."""
NEW_FILE = "headrace.toml"
SERVICES = {
    "router": ("services.router", "Run a router alone, against any NATS (--server)."),
    "worker": ("services.worker", "Run a worker beside one model server (--backend URL)."),
    "projector": ("services.projector", "Run the projector: events into DuckDB statistics."),
    "benchmarker": ("services.benchmarker", "Run the benchmarker: measures idle machines, judges models side by side."),
}

Data = Annotated[
    Path | None, typer.Option("--data", help="Where everything is kept.", show_default="the platform's place for data")
]
Sync = Annotated[
    Literal["always", "10s"] | None,
    typer.Option("--sync", help="When facts are synced to disk: always survives a power cut.", show_default="always"),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        min=0,
        max=65535,
        help="The router's port.",
        show_default="8420; in a demo that does not stay a free one",
    ),
]
Host = Annotated[
    str | None,
    typer.Option(
        "--host", help="Where the router listens: 0.0.0.0 lets other machines in.", show_default="127.0.0.1, here alone"
    ),
]
Backends = Annotated[
    list[str] | None, typer.Option("--backend", metavar="URL", help="A model server; may be repeated.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON: a line per part, then the demo's results.")]
Config = Annotated[Path | None, typer.Option("--config", exists=True, dir_okay=False, help="A headrace.toml.")]


def up(
    demo: Annotated[
        bool, typer.Option("--demo", help="Two real machines and a small model of our own, a dozen prompts, then stop.")
    ] = False,
    stay: Annotated[bool, typer.Option("--stay", help="With --demo: keep running afterwards.")] = False,
    backend: Backends = None,
    data: Data = None,
    port: Port = None,
    host: Host = None,
    lan: Annotated[
        bool, typer.Option("--lan", help="Let other machines ask, with a key, and join with the line that this prints.")
    ] = False,
    sync: Sync = None,
    config: Config = None,
    record: Annotated[
        Path | None, typer.Option("--record", hidden=True, help="Save the demo's output as an SVG.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Start everything on this machine: NATS, router, projector, benchmarker, and a worker for each model server found."""
    from services.cli import up as run
    from services.cli.interrupt import until_signal
    from services.cli.picture import save_picture

    if demo and (host or lan):
        raise CommandFailed(
            "the demo is for this machine alone", hint="leave out --demo, or --host and --lan", code=Exit.USAGE
        )
    if demo and backend:
        raise CommandFailed("--demo brings its own servers", hint="leave out --demo or --backend", code=Exit.USAGE)
    terminal = console(record=record is not None, quiet=json)
    settings = load(config, os.environ)
    if lan and not settings.keys:
        raise CommandFailed(
            f"--lan lets other machines ask, and {config or 'no settings file'} has no key for them",
            hint=f"`headrace key add me --config {config or NEW_FILE}`, then "
            f"`headrace up --lan --config {config or NEW_FILE}`; this machine itself needs no key",
            code=Exit.USAGE,
        )
    when = sync or settings.nats.sync or "always"
    around = run.Terminal(terminal, speaker(terminal, json), config)
    usual = settings.router.port if port is None else port
    if not demo:
        where = host or (EVERYWHERE[0] if lan else settings.router.host)
        listen = run.Listen(where, usual, bool(settings.keys), settings.nats.port if lan else None)
        backends = backend or ([settings.worker.backend] if settings.worker.backend else [])
        place = data or settings.data_dir
        asyncio.run(until_signal(run.up(place, backends=backends, listen=listen, sync=when, around=around)))
        return
    wanted = usual if stay else port or 0  # one that stays is asked without --router
    results = asyncio.run(until_signal(run.up_demo(data, port=wanted, stay=stay, sync=when, around=around)))
    if record:
        save_picture(terminal, record, title="headrace up --demo")
    if json and results is not None:
        emit_json(results)
    if results is None and not stay:
        raise typer.Exit(Exit.INTERRUPTED)


def speaker(terminal: Console, as_json: bool) -> Callable[[str], None]:
    """How the parts' lines are said: as text, or each as a JSON object."""

    def say(line: str) -> None:
        if as_json:
            emit_json({"say": line})
        else:
            terminal.print(Text.assemble(("• ", "green"), line), soft_wrap=True)

    return say


def nats(
    data: Data = None,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="Where it listens. 0.0.0.0 lets other machines in, and whoever comes may do anything."
        ),
    ] = "127.0.0.1",
    port: Annotated[int | None, typer.Option("--port", help="4222 unless set otherwise; -1 is any free one.")] = None,
    sync: Sync = None,
    config: Config = None,
) -> None:
    """Run the embedded nats-server alone."""
    settings = load(config, os.environ)
    place, when = data or settings.data_dir, sync or settings.nats.sync or "always"
    arguments = ["--data", str(place), "--host", host, "--port", str(port or settings.nats.port), "--sync", when]
    become("services.runtime.server", arguments)


def add_services(app: typer.Typer) -> None:
    """One command per service; its arguments are the service's own."""
    for name, (module, words) in SERVICES.items():

        def run(context: typer.Context, module: str = typer.Option(module, hidden=True)) -> None:
            become(module, context.args)

        app.command(name, help=words, context_settings=PASSED_ON, add_help_option=False, rich_help_panel="Run a part")(
            run
        )


def become(module: str, arguments: list[str]) -> None:
    """Replace this process by the module's."""
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-m", module, *arguments])


def find_demo_model(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Install what `up --demo` needs: llama.cpp's server and a small model, each as a wheel."""
    from services.cli.demo import get_parts
    from services.cli.demo_model import MODEL_NAME, missing_parts, model_file

    missing = [part.package for part in missing_parts()]
    get_parts(err.print if json else out.print)
    if json:
        emit_json({"model": MODEL_NAME, "file": str(model_file()), "installed": missing})
    else:
        out.print(f"The demo's parts are here; its model is {model_file()}")
