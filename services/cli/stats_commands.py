"""The command about what was measured: stats, as tables and heat maps, as a picture, and one cell's number part by part.

Answers "what do I type to see how fast and how good everything is?". It gathers and shows; no number is made here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from services.cli import stats_map, stats_table
from services.cli.client import DEFAULT_ROUTER, RouterClient
from services.cli.exits import CommandFailed, Exit
from services.cli.judges_table import judges
from services.cli.output import emit, emit_json, err, show
from services.cli.show_commands import AsJson, OnlyDomain, OnlyModel, OnlyWorker, Router, with_router
from services.cli.stats_explained import explained
from services.cli.stats_table import Which

Json = dict[str, Any]
PAGE_ROWS = 60
"""Of the table; more is scrolled past, not read."""


def stats(
    model: OnlyModel = None,
    domain: OnlyDomain = None,
    worker: OnlyWorker = None,
    speed: Annotated[bool, typer.Option("--speed", help="Only speeds, with more of them.")] = False,
    quality: Annotated[bool, typer.Option("--quality", help="Only quality.")] = False,
    sort: Annotated[
        Literal["name", "decode", "prefill", "quality", "n", "age"],
        typer.Option("--sort", help="Best, most or youngest first, by what was measured of the row itself."),
    ] = "name",
    guesses: Annotated[
        bool, typer.Option("--all", help="Also what is held and was never measured, as it is worked out.")
    ] = False,
    page: Annotated[int, typer.Option("--page", min=1, help="Which part of a long table.")] = 1,
    explain: Annotated[
        str | None,
        typer.Option(
            "--explain",
            metavar="MODEL/DOMAIN/MACHINE",
            help="What this cell's numbers are made of; what -m, -d or -w say is left out here, `-` where they say all.",
        ),
    ] = None,
    judge: Annotated[bool, typer.Option("--judge", help="How far models that judge may be believed.")] = False,
    svg: Annotated[
        Path | None, typer.Option("--svg", metavar="FILE", help="Save the heat maps as a picture.", dir_okay=False)
    ] = None,
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Show the measured speed and quality per model, domain and machine, and how sure they are."""
    which: Which = "speed" if speed and not quality else "quality" if quality and not speed else "both"
    only = {"model": model, "domain": domain, "worker": worker}
    cell = None if explain is None else cell_of(explain, **only)

    async def work(client: RouterClient) -> None:
        if judge:
            emit(await client.get("/stats/judges"), judges, as_json=json)
            return
        if cell is not None:
            told = await client.get("/stats/explain", **cell)
            emit(told, lambda body: explained(body, which), as_json=json)
            return
        of = {"both": None, "speed": "decode", "quality": "quality"}[which]
        if svg is not None:
            await _save(client, svg, {"of": of, **only}, as_json=json)
            return
        query = {"sort": sort, "guesses": "true" if guesses else None, **only}
        if json:
            emit_json(await _every_row(client, query))
            return
        body = await client.get("/stats", limit=PAGE_ROWS, offset=(page - 1) * PAGE_ROWS, **query)
        if not body["rows"] and (said := _nothing(body["total"], page, any(only.values()))):
            show(Text(said))
            return
        sizes = {"rows": stats_map.ROWS, "columns": stats_map.COLUMNS}
        maps = [] if page > 1 else (await client.get("/stats/map", of=of, **sizes, **only))["maps"]
        emit(body, lambda rows: shown(rows, maps, which), as_json=False)

    with_router(router, work)


def _nothing(total: int, page: int, is_filtered: bool) -> str | None:
    """Why no row is there, where it is not that the fleet is new."""
    if total:
        pages = -(-total // PAGE_ROWS)
        return f"There is no page {page}: the {total} rows make {pages}."
    return "Nothing was measured of that yet; with `--all` it is worked out from others." if is_filtered else None


def shown(body: Json, maps: list[Json], which: Which) -> RenderableType:
    """The table, then the maps that hold anything."""
    parts: list[RenderableType] = [stats_table.stats(body, which)]
    for found in maps:
        if any(block["value"] is not None for row in found["rows"] for block in row["blocks"]):
            parts += [Text(""), stats_map.HeatMap(found)]
    return Group(*parts)


def cell_of(text: str, model: str | None, domain: str | None, worker: str | None) -> dict[str, str | None]:
    """``Qwen/Qwen3-8B/code/desk`` is read from its end, because a model's name may hold slashes; what an option says is not
    in it."""
    found = {"worker": worker, "domain": domain, "model": model}
    rest = "" if text == "-" else text
    for name in [name for name, value in found.items() if value is None]:
        before, slash, last = rest.rpartition("/")
        if name == "model" or not slash:
            found[name], rest = rest, ""
        else:
            found[name], rest = last, before
    missing = ["machine" if name == "worker" else name for name, value in found.items() if not value]
    if missing or rest:
        what = f"no {' and no '.join(reversed(missing))}" if missing else f"more than one cell: {rest!r} is left over"
        raise CommandFailed(
            f"--explain {text!r} names {what}",
            hint="for example: headrace stats --explain qwen3/code/desktop, or --explain - -m qwen3 -d code -w desktop",
            code=Exit.USAGE,
        )
    return found


async def _every_row(client: RouterClient, query: Json) -> Json:
    """All pages as one."""
    body: Json = await client.get("/stats", **query)
    while (offset := body["next_offset"]) is not None:
        more = await client.get("/stats", offset=offset, **query)
        body = {**more, "rows": body["rows"] + more["rows"]}
    return body


async def _save(client: RouterClient, file: Path, query: Json, *, as_json: bool) -> None:
    picture = await client.text("/stats.svg", **query)
    try:
        _write(file, picture)
    except OSError as error:
        raise CommandFailed(f"cannot write {file}: {error.strerror}", code=Exit.USAGE) from error
    if as_json:
        emit_json({"file": str(file), "bytes": len(picture.encode())})
    else:
        err.print(f"saved {file}", style="dim", markup=False)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
