"""The commands that ask a running router: ask, fleet, explain, preview, doctor.

Answers "what do I type?". Each gathers through ``client`` and shows through ``tables`` or ``decisions``; none holds a rule.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import RenderableType

from services.cli import decisions, doctor, findings, tables
from services.cli.ask import Narrator, ask as ask_router, check_end, machine_names, rate_hint, summary
from services.cli.client import DEFAULT_ROUTER, RouterClient
from services.cli.exits import CommandFailed, Exit
from services.cli.output import emit, emit_json, err, show
from services.runtime.settings import load

T = TypeVar("T")
PREVIEW_BYTES_MAX = 16_000
"""A preview's prompt travels in the URL, percent-encoded, and the server reads at most 64 KiB of that."""
Router = Annotated[str, typer.Option("--router", envvar="HEADRACE_ROUTER", metavar="URL", help="The router to ask.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Model = Annotated[str | None, typer.Option("--model", "-m", help="Fix the model; left out, the router chooses.")]
Worker = Annotated[str | None, typer.Option("--worker", "-w", help="Fix the machine, by name or id.")]
DomainOf = Annotated[
    str | None, typer.Option("--domain", "-d", help="Say what it is about instead of letting it be guessed.")
]
OnlyModel = Annotated[str | None, typer.Option("--model", "-m", help="Only this model.")]
OnlyWorker = Annotated[str | None, typer.Option("--worker", "-w", help="Only this machine, by name or id.")]
OnlyDomain = Annotated[str | None, typer.Option("--domain", "-d", help="Only prompts of this kind.")]
MaxTokens = Annotated[int | None, typer.Option("--max-tokens", min=1, help="The longest answer to make.")]
ShowAll = Annotated[bool, typer.Option("--all", help="Every candidate, every number, however long that is.")]
Beside = Annotated[
    str | None,
    typer.Option(
        "--versus",
        metavar="POLICY|ROUTE|TASK|TIME",
        help="Set it beside what another policy (least_in_flight, slider=2), a route, a task or a time (2h) says.",
    ),
]
Prompt = Annotated[list[str] | None, typer.Argument(help="The prompt; left out or `-`, it is read from stdin.")]


def ask(
    prompt: Prompt = None,
    model: Model = None,
    worker: Worker = None,
    domain: DomainOf = None,
    max_tokens: MaxTokens = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Afterwards, say why this model and this machine.")
    ] = False,
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Ask the fleet; the answer streams to stdout."""
    constraints = {"worker": worker, "domain": domain, "max_tokens": max_tokens}
    request = {
        "prompt": prompt_of(prompt),
        "model": model,
        "constraints": {key: value for key, value in constraints.items() if value is not None},
    }

    async def work(client: RouterClient) -> None:
        end = await ask_router(client, request, Narrator(quiet=json))
        why = await client.get(f"/explain/{end['status']['task']}") if explain else None
        if json:
            emit_json(end | ({"explanation": why} if why else {}))
        else:
            if said := summary(end):
                err.print(f"{said}\n{rate_hint(end)}", style="dim", markup=False, soft_wrap=True)
            if why:
                show(decisions.explanation(why, names=await machine_names(client)), err)
        check_end(end)

    with_router(router, work)


def fleet(
    models: Annotated[
        bool, typer.Option("--models", help="The models and who holds them, instead of the machines.")
    ] = False,
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Show the machines: free or busy, what they hold, what is not known of them."""
    _show(router, "/models" if models else "/workers", tables.models if models else tables.fleet, as_json=json)


def explain(
    task: Annotated[
        str, typer.Argument(help="A task's whole id: `headrace ask`, `queue` and the header x-headrace-task show it.")
    ],
    show_all: ShowAll = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Compute its decisions again from the log and say what differs.")
    ] = False,
    versus: Beside = None,
    events: Annotated[bool, typer.Option("--events", help="Also list the task's events.")] = False,
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Say in words and numbers why a task went where it went."""

    async def work(client: RouterClient) -> None:
        body = await client.get(f"/explain/{task}", verify=verify or None, versus=versus)
        names = {} if json else await machine_names(client)

        def show(value: Any) -> RenderableType:
            return decisions.explanation(value, names=names, with_events=events, show_all=show_all)

        emit(body, show, as_json=json)
        if any(each["same"] is False for each in body.get("verification") or ()):
            raise typer.Exit(Exit.FAILED)

    with_router(router, work)


def preview(
    prompt: Prompt = None,
    model: Model = None,
    worker: Worker = None,
    domain: DomainOf = None,
    max_tokens: MaxTokens = None,
    show_all: ShowAll = False,
    versus: Beside = None,
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Show what the router would decide now, part by part; nothing is sent to a machine."""
    text = prompt_of(prompt)
    if len(text.encode()) > PREVIEW_BYTES_MAX:
        raise CommandFailed(
            f"a preview takes a prompt of at most {PREVIEW_BYTES_MAX} bytes, this has {len(text.encode())}",
            hint="its beginning decides the domain as well; `headrace ask --explain` takes any length",
            code=Exit.USAGE,
        )
    query = {"prompt": text, "model": model, "worker": worker, "domain": domain, "max_tokens": max_tokens}
    show = partial(decisions.preview, show_all=show_all)
    _show(router, "/route/preview", show, as_json=json, versus=versus, **query)


def check(
    data: Annotated[Path | None, typer.Option("--data", help="The data directory to look at.")] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", exists=True, dir_okay=False, help="The headrace.toml that says where it is."),
    ] = None,
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Check each part and say what to do."""

    async def work(client: RouterClient) -> None:
        settings = load(config, os.environ)
        report = await doctor.examine(client, data or settings.data_dir, named=bool(data or config))
        emit([finding._asdict() for finding in report] if json else report, doctor.render, as_json=json)
        if findings.failed(report):
            raise typer.Exit(Exit.FAILED)

    with_router(router, work)


def _show(router: str, path: str, render: Callable[[Any], RenderableType], *, as_json: bool, **query: Any) -> None:
    async def work(client: RouterClient) -> None:
        emit(await client.get(path, **query), render, as_json=as_json)

    with_router(router, work)


def with_router(url: str, work: Callable[[RouterClient], Coroutine[Any, Any, T]]) -> T:
    """Run ``work`` with a client of the router at ``url``."""

    async def run() -> T:
        async with RouterClient(url) as client:
            return await work(client)

    return asyncio.run(run())


def prompt_of(words: list[str] | None) -> str:
    if words and words != ["-"]:
        return " ".join(words)
    if words is None and sys.stdin.isatty():
        raise CommandFailed(
            "there is no prompt", hint='for example: headrace ask "What is a headrace?"', code=Exit.USAGE
        )
    text = sys.stdin.read()
    if not text.strip():
        raise CommandFailed(
            "the prompt on stdin is empty",
            hint='write it behind the command: headrace ask "What is a headrace?"',
            code=Exit.USAGE,
        )
    return text
