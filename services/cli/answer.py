"""``headrace answer``: an answer that is stored, afterwards.

Answers "what did it say?", also of a bench's or a comparison's task. Asks nobody anew.
"""

from __future__ import annotations

from typing import Annotated

import typer

from services.cli.ask import check_end, summary
from services.cli.client import DEFAULT_ROUTER, RouterClient, task_path
from services.cli.exits import CommandFailed
from services.cli.output import emit_json, err
from services.cli.show_commands import AsJson, Router, with_router

NOT_YET = ("waiting", "released", "running")


def answer(
    task: Annotated[str, typer.Argument(help="The task's whole id.")],
    router: Router = DEFAULT_ROUTER,
    json: AsJson = False,
) -> None:
    """Print the answer of a task that has ended, such as one of bench or compare."""

    async def work(client: RouterClient) -> None:
        stored = await client.get(task_path(task))
        if json:
            emit_json(stored)
            return
        if (state := stored["status"]["state"]) in NOT_YET:
            raise CommandFailed(f"there is no answer of {task} yet: it is {state}", hint="`headrace queue` shows it")
        check_end(stored, allow_empty=True)
        if stored["answer"] is None:
            raise CommandFailed(
                f"the answer of {task} is kept no longer", hint="[privacy] keep_s says how long answers are"
            )
        typer.echo(stored["answer"]["text"])
        if said := summary(stored):
            err.print(said, style="dim", markup=False, soft_wrap=True)

    with_router(router, work)
