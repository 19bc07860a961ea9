"""The commands about what answers are worth: feedback, compare.

Answers "how do I say that an answer was good, or see several of them?". None holds a rule: the router does what is asked.
"""

from __future__ import annotations

import sys
from asyncio import to_thread
from collections.abc import Callable
from contextlib import nullcontext
from typing import Annotated, Any

import click
import typer
from rich.live import Live
from rich.text import Text

from services.cli.client import DEFAULT_ROUTER, RouterClient
from services.cli.compare import Comparison, columns, plain, times
from services.cli.exits import CommandFailed, Exit
from services.cli.output import emit, emit_json, err, out, show
from services.cli.show_commands import AsJson, DomainOf, MaxTokens, Prompt, Router, prompt_of, with_router

Json = dict[str, Any]
RATINGS = {"up": 1, "good": 1, "👍": 1, "down": -1, "bad": -1, "👎": -1, "so-so": 0}


def feedback(
    task: Annotated[str, typer.Argument(help="The task's whole id, or with --pick the comparison's.")],
    rating: Annotated[str | None, typer.Argument(help="up, down, so-so, or a number from 0 to 1.")] = None,
    comment: Annotated[list[str] | None, typer.Argument(help="Why, for whoever looks.")] = None,
    pick: Annotated[
        int | None, typer.Option("--pick", min=1, help="The number of the answer that you prefer, of a comparison.")
    ] = None,
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Say what an answer was worth; saying it again replaces it."""
    if pick is not None:
        words = " ".join(filter(None, (rating, *(comment or ()))))
        body: Json = {"compare": task, "pick": pick}
    else:
        words = " ".join(comment or ())
        body = {"task": task, **_rating(rating)}
    body |= {"comment": words} if words else {}

    async def work(client: RouterClient) -> None:
        emit(await client.post("/feedback", body), _noted, as_json=json)

    with_router(router, work)


def compare(
    prompt: Prompt = None,
    models: Annotated[
        str | None, typer.Option("--models", "-m", metavar="A,B", help="Only these models; left out, all.")
    ] = None,
    workers: Annotated[
        str | None, typer.Option("--workers", "-w", metavar="A,B", help="Only these machines; left out, all.")
    ] = None,
    judge: Annotated[bool, typer.Option("--judge", help="Let a model of another family judge the answers.")] = False,
    judge_by: Annotated[
        str | None, typer.Option("--judge-by", metavar="MODEL", help="Let this model judge the answers.")
    ] = None,
    pick: Annotated[bool, typer.Option("--pick", help="Afterwards, ask which answer is the best.")] = False,
    domain: DomainOf = None,
    max_tokens: MaxTokens = None,
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Ask every model on every machine the same, and show the answers side by side with what each cost."""
    if pick and (json or not sys.stdin.isatty()):
        raise CommandFailed(
            "--pick asks for a key, and there is no terminal to ask at",
            hint="afterwards: headrace feedback COMPARISON --pick NUMBER",
            code=Exit.USAGE,
        )
    constraints = {"domain": domain, "max_tokens": max_tokens}
    body: Json = {
        "prompt": prompt_of(prompt), "models": _names(models), "workers": _names(workers), "judge": judge_by or judge,
        "constraints": {key: value for key, value in constraints.items() if value is not None},
    }  # fmt: skip

    async def work(client: RouterClient) -> None:
        found = await _followed(client, body, quiet=json)
        if json:
            emit_json({**await client.get(f"/compare/{found.id}"), "removed": found.removed})
        else:
            show(times(found))
            if found.rivals < 2:
                alone = "there is nothing to choose between: fewer than two models answered"
                err.print(f"{alone}; rate one alone: headrace feedback TASK up", style="dim", soft_wrap=True)
            elif (chosen := await to_thread(_ask_key, len(found.entries)) if pick else None) is not None:
                show(_noted(await client.post("/feedback", {"compare": found.id, "pick": chosen})), err)
            else:
                err.print(f"say which is best: headrace feedback {found.id} --pick NUMBER", style="dim", soft_wrap=True)
        if not any(end["status"]["state"] == "completed" for end in found.ends.values()):
            raise CommandFailed("not one of them answered", hint="the table says why")

    with_router(router, work)


async def _followed(client: RouterClient, body: Json, *, quiet: bool) -> Comparison:
    """Shown as it comes, to its end. Raises CommandFailed where the router breaks off."""
    found = Comparison()
    live = Live(console=out, auto_refresh=False, transient=True) if out.is_terminal and not quiet else None
    with live or nullcontext():
        async for event in client.events("/compare", body):
            found.hear(event)
            if live is not None:
                live.update(columns(found, out.width), refresh=True)
            elif event.name == "end" and not quiet:
                out.print(Text(plain(found, list(found.ends)[-1])), soft_wrap=True)
    if live is not None:
        show(columns(found, out.width, lines=None))
    if found.error is not None or not found.is_done:
        told = (found.error or {}).get("message") or "the router closed the stream before the comparison ended"
        raise CommandFailed(str(told), hint="what runs there was cancelled, or goes on: `headrace queue`")
    return found


def _rating(rating: str | None) -> Json:
    if rating is None:
        raise CommandFailed("say what it was worth", hint="headrace feedback TASK up, or down", code=Exit.USAGE)
    if rating.lower() in RATINGS:
        return {"rating": RATINGS[rating.lower()]}
    try:
        value = float(rating)
    except ValueError:
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise CommandFailed(
            f"{rating!r} is no rating", hint="up, down, so-so, or a number from 0 to 1", code=Exit.USAGE
        )
    return {"value": value}


def _names(text: str | None) -> list[str] | None:
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    return names or None


def _noted(answer: Json) -> Text:
    if answer["stored"] and answer["stored"][0]["peer"] is not None:
        won = [row for row in answer["stored"] if row["value"] == 1.0]
        told = f"noted: {won[0]['model']} before {', '.join(row['peer'] for row in won)}"
    else:
        row = answer["stored"][0]
        told = f"noted: {row['value']:g} of 1 for {row['model']} on {row['worker_name']}, domain {row['domain']}"
    return Text(f"{told}{' (as before)' if answer['again'] else ''}")


def _ask_key(most: int, getchar: Callable[[], str] | None = None) -> int | None:
    """A digit's key at once, or a number and Enter where there are more than nine; anything else is nobody."""
    if most > 9:
        said = input(f"Which is best? [1-{most}, Enter: none] ")
    else:
        err.print(f"Which is best? [1-{most}, any other key: none]", markup=False)
        said = (getchar or click.getchar)()
    return int(said) if said.isascii() and said.isdigit() and 1 <= int(said) <= most else None
