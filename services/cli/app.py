"""The ``headrace`` command line, put together: which commands exist, in which order.

Answers "what can I type?". ``headrace`` alone shows the five that a newcomer needs.
"""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from services.cli import (
    answer,
    bench,
    evidence_commands,
    join,
    key,
    pipe,
    pull,
    queue_commands,
    run_commands,
    show_commands,
    stats_commands,
)
from services.cli.output import out, show

NEWCOMER = (
    ("headrace up", "start everything here; `up --demo` brings its own models"),
    ("headrace join CODE", "add another machine; `up --lan` prints its line"),
    ("headrace fleet", "the machines: free, busy, what they hold"),
    ("headrace ask 'What is …?'", "ask the fleet; `--explain` says why this machine"),
    ("headrace doctor", "check each part and say what to do"),
)

app = typer.Typer(
    add_completion=True, invoke_without_command=True, pretty_exceptions_enable=False, rich_markup_mode="rich"
)


@app.callback()
def start(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    """Headrace leads each prompt to the machine that the evidence says answers best."""
    if version:
        out.print(f"headrace {importlib.metadata.version('headrace')}")
    elif context.invoked_subcommand is None:
        show(newcomer())


def newcomer() -> RenderableType:
    table = Table.grid("", "", padding=(0, 2))
    for command, words in NEWCOMER:
        table.add_row(Text(f"  {command}", style="bold", no_wrap=True), words)
    head = "Headrace leads each prompt to the machine that the evidence says answers best.\n"
    foot = "\n`headrace --help` lists all commands, `headrace COMMAND --help` their options."
    return Group(head, table, Text(foot, style="dim"))


USE, RUN = "Use it", "Run a part"
app.command("up", rich_help_panel="Start")(run_commands.up)
app.command("join", rich_help_panel="Start")(join.join)
app.command("ask", rich_help_panel=USE)(show_commands.ask)
app.command("fleet", rich_help_panel=USE)(show_commands.fleet)
app.command("stats", rich_help_panel=USE)(stats_commands.stats)
app.command("explain", rich_help_panel=USE)(show_commands.explain)
app.command("answer", rich_help_panel=USE)(answer.answer)
app.command("preview", rich_help_panel=USE)(show_commands.preview)
app.command("queue", rich_help_panel=USE)(queue_commands.queue)
app.command("compare", rich_help_panel=USE)(evidence_commands.compare)
app.command("feedback", rich_help_panel=USE)(evidence_commands.feedback)
app.command("bench", rich_help_panel=USE)(bench.bench)
app.command("pipe", rich_help_panel=USE)(pipe.pipe)
app.command("pause", rich_help_panel=USE)(queue_commands.pause)
app.command("resume", rich_help_panel=USE)(queue_commands.resume)
app.add_typer(key.keys, name="key", rich_help_panel=USE)
app.command("pull", rich_help_panel=USE)(pull.pull)
app.command("doctor", rich_help_panel=USE)(show_commands.check)
run_commands.add_services(app)
app.command("nats", rich_help_panel=RUN)(run_commands.nats)
app.command("demo-model", rich_help_panel=RUN)(run_commands.find_demo_model)
