"""``headrace pull``: a model is fetched by one machine, or by all that can, with a bar for each.

Answers "how far is it, where?". The router passes the wish on; each machine's own model server fetches.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

from services.cli.client import DEFAULT_ROUTER, RouterClient
from services.cli.exits import CommandFailed, Exit
from services.cli.output import emit_json, err, out
from services.cli.show_commands import AsJson, Router, with_router

ALL = "all"
OLLAMA = "ollama"
Told = Callable[[str, dict[str, Any]], None]


def pull(
    model: Annotated[str, typer.Argument(help="The model, as the machine's model server calls it (qwen3:8b).")],
    on: Annotated[str, typer.Option("--on", metavar="MACHINE|all", help="The machine, by name or id, or all.")],
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Have a machine fetch a model; Ctrl-C ends the download, and the next one goes on from there."""

    async def work(client: RouterClient) -> None:
        machines = await machines_of(client, on)
        with _told(machines, as_json=json) as told:
            ends = await asyncio.gather(*(one(client, machine, model, told) for machine in machines))
        failed = {machine: error for machine, error in zip(machines, ends, strict=True) if error is not None}
        if failed:
            words = (error if machine in error else f"{machine}: {error}" for machine, error in failed.items())
            raise CommandFailed("; ".join(words), hint="`headrace fleet` lists the machines and what they run")
        if not json:
            out.print(f"{model} is on {', '.join(machines)}", markup=False)

    with_router(router, work)


async def machines_of(client: RouterClient, on: str) -> list[str]:
    """The names; for ``all`` those that can fetch and are there."""
    if on != ALL:
        return [on]
    rows = (await client.get("/workers"))["workers"]
    able = [row["id"] for row in rows if row["backend"] == OLLAMA and row["state"] not in ("silent", "backend down")]
    if not able:
        raise CommandFailed(
            "no machine with an Ollama is there", hint="`headrace fleet` lists the machines", code=Exit.NOT_FOUND
        )
    names = {row["id"]: row["name"] for row in rows}
    called = [names[id_] for id_ in able]
    return [name if called.count(name) == 1 else id_ for name, id_ in zip(called, able, strict=True)]


async def one(client: RouterClient, machine: str, model: str, told: Told) -> str | None:
    """None at success, else what went wrong there; what the others do goes on."""
    last: dict[str, Any] = {}
    try:
        async for last in lines(client, machine, model):
            told(machine, last)
    except CommandFailed as error:
        return str(error).removeprefix("worker: ")
    if (said := last.get("error")) is not None:
        return str(said).removeprefix("worker: ")
    return None if last.get("status") == "success" else "the router broke off; is the machine still there?"


def lines(client: RouterClient, machine: str, model: str) -> AsyncIterator[dict[str, Any]]:
    return client.lines("/api/pull", {"model": model, "worker": machine, "stream": True})


@contextmanager
def _told(machines: list[str], *, as_json: bool) -> Any:
    """Where the words go: JSON lines, or one bar for each machine and file."""
    if as_json:
        yield lambda machine, word: emit_json({"worker": machine, **word})
        return
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=err, disable=not err.is_terminal) as progress:
        yield Bars(progress, many=len(machines) > 1)


class Bars:
    """A bar for each file of each machine; words without numbers are said once."""

    def __init__(self, progress: Progress, *, many: bool) -> None:
        self._progress, self._many = progress, many
        self._bars: dict[tuple[str, str], TaskID] = {}
        self._said: dict[str, str] = {}

    def __call__(self, machine: str, word: dict[str, Any]) -> None:
        where = f"{machine}: " if self._many else ""
        status, total = str(word.get("status") or ""), word.get("total")
        if total is None:
            if status and self._said.get(machine) != status:
                self._said[machine] = status
                self._progress.console.print(f"{where}{status}", markup=False, style="dim")
            return
        file = str(word.get("digest") or status)
        key = (machine, file)
        if key not in self._bars:
            self._bars[key] = self._progress.add_task(f"{where}{file.removeprefix('sha256:')[:12]}", total=total)
        self._progress.update(self._bars[key], completed=word.get("completed") or 0, total=total)
