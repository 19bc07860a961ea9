"""``headrace bench``: have the suites run, show how far they are, and then who is how good at what.

Answers "which model is better, and how sure is that?". The benchmarker does it (docs/benchmarking.md); this asks and shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import contextmanager, nullcontext, suppress
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from services.cli import numbers
from services.cli.client import DEFAULT_ROUTER, RouterClient
from services.cli.exits import CommandFailed, Exit
from services.cli.numbers import known
from services.cli.output import emit, err
from services.cli.show_commands import AsJson, OnlyDomain, OnlyWorker, Router, with_router
from services.cli.tables import grid

Json = dict[str, Any]
LOOK_S = 0.5
"""A prompt takes a second or more; a look is answered from memory."""
MISTAKES_MAX = 5
"""What a look at the grades needs; a whole run may have hundreds."""
LOST_LOOKS = 20
"""A router that restarts is back by then; the run does not need it."""


def bench(
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Only this model; loaded where needed.", show_default="those in memory"),
    ] = None,
    worker: OnlyWorker = None,
    domain: OnlyDomain = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="At most so many prompts per model, domain and machine.")
    ] = None,
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Ask the suites' questions and show each model's grades and speed; Ctrl-C gives up what is left."""
    demand = {"model": model, "worker": worker, "domain": domain, "limit": limit}

    async def work(client: RouterClient) -> None:
        with nullcontext(lambda _shown: None) if json else progress(err) as told:
            shown = await run(client, {key: value for key, value in demand.items() if value is not None}, told)
        emit(shown, table, as_json=json)
        if not any(row["n"] for row in shown["rows"]):
            raise typer.Exit(Exit.FAILED)

    with_router(router, work)


async def run(client: RouterClient, demand: Json, told: Callable[[Json], None]) -> Json:
    """The run as it ended. Interrupted, it ends the run before it leaves."""
    shown: Json = await client.post("/bench", demand)
    path = f"/bench/{quote(shown['run'], safe='')}"
    lost = 0
    try:
        while shown["state"] == "running":
            told(shown)
            await asyncio.sleep(LOOK_S)
            try:
                shown, lost = await client.get(path), 0
            except CommandFailed as error:
                lost += 1
                if error.code == Exit.NOT_FOUND or lost == LOST_LOOKS:
                    raise
    except asyncio.CancelledError:
        with suppress(CommandFailed):
            await client.delete(path)
        raise
    return shown


@contextmanager
def progress(console: Console) -> Any:
    """A bar with the time that is left, on a terminal; elsewhere one line at the beginning."""
    columns = (TextColumn("asking"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("asking", total=None, left="")
        said: list[str] = []

        def told(shown: Json) -> None:
            if not console.is_terminal and not said:
                said.append(f"run {shown['run']}: {shown['total']} prompts")
                console.print(said[0], markup=False)
            eta = "" if shown["eta_s"] is None else f"{numbers.seconds(max(1, round(shown['eta_s'])))} left"
            bar.update(task, completed=shown["done"], total=shown["total"], left=eta)

        yield told


def table(shown: Json) -> RenderableType:
    rows = grid(
        *("model", "domain", "machine", "grade>", "95 %>", "prompts>", "speed>", "note"),
        spare=(("note",), ("machine",)),
    )
    for row in shown["rows"]:
        rows.add_row(
            Text(row["model"], style="bold"),
            row["domain"],
            row["worker_name"],
            known(row["grade"], numbers.share),
            "" if row["low"] is None else f"{numbers.share(row['low'])} to {numbers.share(row['high'])}",
            f"{row['n']} of {row['total']}",
            known(row["decode"], numbers.rate),
            f"{row['ungraded']} without a grade: {row['why']}" if row["ungraded"] else "",
        )
    parts: list[RenderableType] = [rows]
    if shown["state"] == "cancelled":
        parts.append(Text(f"The run ended early, after {shown['done']} of {shown['total']} prompts.", style="yellow"))
    parts += [Text(versus(each)) for each in shown["versus"]]
    parts += mistakes(shown.get("asked", []))
    if left := shown["judged"]:
        words = f"{left} prompts have no check and were" if left > 1 else "1 prompt has no check and was"
        parts.append(Text(f"{words} not asked: judges weigh such answers in pairs.", style="dim"))
    return Group(*parts)


def mistakes(asked: list[Json]) -> list[RenderableType]:
    """What was not right, the worst first, and where its answer is."""
    wrong = [each for each in asked if each["task"] and (each["grade"] is None or each["grade"] < 1.0)]
    if not wrong:
        return []
    lines = [
        f"  {known(each['grade'], numbers.share)}  {each['model']} on {each['worker_name']}, {each['prompt']}: {each['why']}; "
        f"task {each['task']}"
        for each in wrong[:MISTAKES_MAX]
    ]
    more = len(wrong) - MISTAKES_MAX
    last = f"  and {more} more, with --json; " if more > 0 else "  "
    hint = f"{last}an answer's text: `headrace answer TASK`"
    return [Text("Not right, the worst first:"), *map(Text, lines), Text(hint, style="dim")]


def versus(each: Json) -> str:
    """``code: smollm2 is better than gemma, by 0.40 (0.20 to 0.60) over 15 prompts``."""
    numbers_of = f"by {each['difference']:.2f} ({each['low']:.2f} to {each['high']:.2f}) over {each['n']} prompts"
    if each["better"] is None:
        return f"{each['domain']}: undecided between {each['first']} and {each['second']}, {numbers_of}"
    worse = each["second"] if each["better"] == each["first"] else each["first"]
    return f"{each['domain']}: {each['better']} is better than {worse}, {numbers_of}"
