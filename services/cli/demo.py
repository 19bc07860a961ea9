"""The demo: real prompts to two real machines of different speed, and what the evidence says afterwards.

Answers "what does Headrace do?" in under a minute. Every name and number shown is read back from the router.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from services.cli import decisions, numbers, stats_table
from services.cli.ask import check_end, machine_names
from services.cli.board import Board, Row
from services.cli.client import RouterClient, task_path
from services.cli.demo_model import install, missing_parts
from services.cli.exits import CommandFailed
from services.cli.fleet_process import DemoFleet
from services.cli.output import show
from services.cli.prompts import MAX_TOKENS, PROMPTS, WAYS, DemoPrompt
from services.cli.supervision import Say, together

Json = dict[str, Any]
FOLD_WITHIN_S = 15.0
"""The projector folds and publishes within a fraction of a second; a busy machine gets more."""
FREE_WITHIN_S = 3.0
"""A worker says that it is free within milliseconds of an answer's end; a busy machine gets more."""
POLL_S = 0.05


def get_parts(say: Say) -> None:
    """Install what the demo needs and this environment lacks, saying so; raises CommandFailed where it cannot be had."""
    for part in missing_parts():
        say(f"{part.package} is missing ({part.purpose}); installing it")
        install(part)


class Demo:
    """One run against one fleet."""

    def __init__(self, client: RouterClient, console: Console, machines: tuple[str, ...]) -> None:
        self._client = client
        self._console = console
        self._machines = machines
        self._names: dict[str, str] = {}
        self.board = Board(console, machines)

    async def run(self) -> Json:
        """Ask everything, then show the measurements and one decision; returns all of it for ``--json``."""
        self._names = await machine_names(self._client)
        with self.board.showing():
            await self._ask_all()
        show(self.board.render(), self._console)
        stats = await self._measured()
        self._console.print(Text("What was measured, per model, domain and machine", style="bold"))
        show(stats_table.stats(stats), self._console)
        self._console.print(self._lessons())
        why = await self._client.get(f"/explain/{self._explained().task}")
        self._console.print(
            Text(f"\nWhy “{self._explained().prompt}” went to {self._explained().machine}", style="bold")
        )
        self._console.print(decisions.explanation(why, names=self._names))
        return {"prompts": [vars(row) for row in self.board.rows], "stats": stats, "explanation": why}

    async def _ask_all(self) -> None:
        """First one prompt to each machine, because nothing is known of a machine that was never asked."""
        measure, at_once, alone = ([prompt for prompt in PROMPTS if prompt.way == way] for way in WAYS)
        await together(*(self._ask(prompt, machine) for prompt, machine in zip(measure, self._machines, strict=True)))
        await self._measured()
        await together(*(self._ask(prompt) for prompt in at_once))
        for prompt in alone:
            await self._all_free()
            await self._ask(prompt)

    async def _all_free(self) -> None:
        """As somebody who reads the answer before asking again would find the fleet."""
        deadline = time.monotonic() + FREE_WITHIN_S
        while time.monotonic() < deadline:
            workers = (await self._client.get("/workers"))["workers"]
            if all(worker["free"] == worker["slots"] for worker in workers):
                return
            await asyncio.sleep(POLL_S)

    async def _ask(self, prompt: DemoPrompt, machine: str | None = None) -> None:
        row = self.board.add(prompt.text)
        constraints = {"max_tokens": MAX_TOKENS} | ({"worker": machine} if machine else {})
        body = {"prompt": prompt.text, "constraints": constraints, "options": {"temperature": 0.0}, "client": "demo"}
        submitted = await self._client.post("/route", body)
        row.task, row.domain, row.state = submitted["task"], submitted["domain"]["label"], "waiting"
        async for event in self._client.events(task_path(row.task, "stream")):
            self._update(row, event.name, msgspec.json.decode(event.data))
        self.board.ended(row)

    def _update(self, row: Row, kind: str, data: Json) -> None:
        match kind:
            case "status":
                row.state = data["state"]
                row.machine = self._names.get(data.get("worker") or "", "")
            case "token":
                row.answer += data.get("text") or ""
            case "restart":
                row.answer = ""
            case "end":
                check_end(data, allow_empty=True)
                status, tokens, times = data["status"], data["status"]["tokens"] or {}, data["status"]["times"] or {}
                row.state, row.machine, row.total_s = status["state"], data["worker_name"], times.get("total_s")
                if tokens.get("output") and times.get("decode_s"):
                    row.rate = tokens["output"] / times["decode_s"]
                row.answer = (data["answer"] or {}).get("text") or row.answer or "(said nothing)"

    def _explained(self) -> Row:
        """The last prompt that had the whole fleet to choose from and was alone: its decision rests on measurements."""
        number = max(index for index, prompt in enumerate(PROMPTS) if prompt.way == "one by one")
        return self.board.rows[number]

    async def _measured(self) -> Json:
        """The statistics once they hold every prompt of this run."""
        tasks, deadline = len(self.board.rows), time.monotonic() + FOLD_WITHIN_S
        while True:
            stats: Json = await self._client.get("/stats")
            counted = sum(row["ok_n"] + row["fail_n"] for row in stats["rows"])
            if counted >= tasks:
                return stats
            if time.monotonic() > deadline:
                raise CommandFailed(
                    f"only {counted} of {tasks} answers were measured after {FOLD_WITHIN_S:g} s",
                    hint="see the projector's log",
                )
            await asyncio.sleep(POLL_S)

    def _lessons(self) -> Text:
        """How often each machine answered, and what it was measured at."""
        told = []
        for machine in self._machines:
            answered = sum(row.machine == machine for row in self.board.rows)
            rates = [row.rate for row in self.board.rows if row.machine == machine and row.rate]
            mean = sum(rates) / len(rates) if rates else None
            told.append(
                f"{machine} answered {answered} of {len(self.board.rows)}, at {numbers.known(mean, numbers.rate)}"
            )
        return Text("  " + "; ".join(told))


async def run(fleet: DemoFleet, console: Console) -> Json:
    async with fleet.client() as client:
        return await Demo(client, console, tuple(fleet.machines)).run()
