"""The commands about waiting: queue, pause, resume.

Answers "what do I type to see who waits, and to take a machine out?". None holds a rule: the router does what is asked.
"""

from __future__ import annotations

from asyncio import sleep
from collections.abc import Callable, Coroutine
from contextlib import nullcontext
from functools import partial
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.live import Live
from rich.text import Text

from services.cli import numbers
from services.cli.ask import machine_names
from services.cli.client import DEFAULT_ROUTER, RouterClient
from services.cli.exits import CommandFailed, Exit
from services.cli.output import emit, emit_json, out, show
from services.cli.queue_board import QueueBoard
from services.cli.show_commands import AsJson, Router, with_router

WATCH_S = 1.0
"""The router itself looks at places once a second."""


def queue(
    watch: Annotated[bool, typer.Option("--watch", help="Show it again each second, until Ctrl-C.")] = False,
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Show what waits, with its place, the reason and when it may start, and what runs."""

    async def once(client: RouterClient) -> None:
        body = await client.get("/queue")
        names = {} if json else await machine_names(client)
        emit(body, lambda value: QueueBoard(value, names), as_json=json)

    with_router(router, _watched(json) if watch else once)


def pause(
    worker: Annotated[str, typer.Argument(help="The machine, by name or id.")],
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help="For so long, such as 45m, 2h or 1d; left out, until resumed."),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever looks.")] = "",
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Take a machine out: what runs there ends, nothing new begins, nothing is lost."""
    body: dict[str, Any] = {"reason": reason}
    if for_ is not None:
        try:
            body["for_s"] = numbers.duration(for_)
        except ValueError as error:
            raise CommandFailed(f"--for {for_!r}: {error}", hint="for example --for 45m", code=Exit.USAGE) from error
    _set(router, worker, "pause", body, as_json=json, long=for_)


def resume(
    worker: Annotated[str, typer.Argument(help="The machine, by name or id.")],
    reason: Annotated[str, typer.Option("--reason", help="Why, for whoever looks.")] = "",
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Let a paused machine take work again."""
    _set(router, worker, "resume", {"reason": reason}, as_json=json)


def _set(router: str, worker: str, what: str, body: dict[str, Any], *, as_json: bool, long: str | None = None) -> None:
    async def work(client: RouterClient) -> None:
        answer = await client.post(f"/workers/{quote(worker, safe='')}/{what}", body)
        emit(answer, partial(_said, long=long), as_json=as_json)

    with_router(router, work)


def _said(answer: dict[str, Any], *, long: str | None = None) -> Text:
    row = answer["worker"]
    if not row["paused"]:
        return Text(f"{row['name']} takes work again")
    runs = row["running"]
    ends = f"; what runs there ({runs}) ends first" if runs else ""
    how_long = row["paused"] if long is None else f"for {long} ({row['paused']})"
    return Text(f"{row['name']} is paused {how_long}{ends}")


def _watched(as_json: bool) -> Callable[[RouterClient], Coroutine[Any, Any, None]]:
    """On a terminal in place; in a pipe one queue after the other."""

    async def work(client: RouterClient) -> None:
        with Live(console=out, auto_refresh=False) if out.is_terminal and not as_json else nullcontext() as live:
            while True:
                body = await client.get("/queue")
                if as_json:
                    emit_json(body)
                elif live is None:
                    show(QueueBoard(body, await machine_names(client)))
                else:
                    live.update(QueueBoard(body, await machine_names(client)), refresh=True)
                await sleep(WATCH_S)

    return work
