"""One prompt from the command line: submit, stream the answer, say who gave it.

Answers "what does the fleet say to this?". The answer alone goes to stdout; who answers, why it waits and how fast it was go to
stderr, so that a pipe gets only text.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

import msgspec
from rich.console import Console

from services.cli import numbers
from services.cli.client import RouterClient, task_path
from services.cli.exits import CommandFailed, Exit
from services.cli.output import err, out
from services.cli.queue_board import rise_words

Json = dict[str, Any]
ENDS_WELL = "completed"
ENDS = {"dead": "was given up", "cancelled": "was cancelled"}
REMARKS = {
    "truncated": "The answer was cut off by the model's server: its window was full, or it has a limit of its own.",
    "substituted": "Another model answered than was asked for.",
    "wrong_language": "The answer is in another language than the question.",
}
"""What is said of an answer that came, but not as it should."""
AT_LIMIT = "The answer was cut off: it reached the most tokens that were asked for."
LENGTH_REASONS = ("length", "max_tokens")


class Narrator:
    """Shows a task's updates as they come: text to ``text``, everything about it to ``remarks``."""

    def __init__(self, text: Console = out, remarks: Console = err, *, quiet: bool = False) -> None:
        self._text = text
        self._remarks = remarks
        self._quiet = quiet
        self._last_remark = ""
        self._place: tuple[int | None, str] = (None, "")
        self._rises: list[Json] = []
        self._mid_line = False
        self._thinking = False

    def status(self, status: Json, names: dict[str, str]) -> None:
        """Waiting with its place and reason, then where it runs; each said once."""
        machine = names.get(str(status.get("worker")), status.get("worker"))
        if status["state"] == "waiting" and (status.get("reason") or status.get("position")):
            self._waits(status)
        elif status["state"] == "running":
            self._remark(f"{status.get('model')} on {machine}")

    def _waits(self, status: Json) -> None:
        """Its place and reason when they change, each rise once; the seconds alone are no news."""
        for rise in status.get("rises") or ():
            if rise not in self._rises:
                self._rises.append(rise)
                self._remark(rise_words(rise))
        reason = str(status.get("reason") or "no machine is free")
        if self._place == (None, ""):
            self._remark(f"task {status['task']}")
        if (status.get("position"), reason.partition(":")[0]) != self._place:
            self._place = status.get("position"), reason.partition(":")[0]
            place = f"place {status['position']}" if status.get("position") else "without a place yet"
            eta = status.get("eta_s")
            starts = "" if eta is None else f", starts in {'about ' * (eta >= 1)}{numbers.seconds_to_go(eta)}"
            self._remark(f"waiting, {place}{starts}: {reason}")

    def warn(self, words: str) -> None:
        """What was asked may not be what was meant."""
        self._remark(f"note: {words}")

    def token(self, token: Json) -> None:
        """Thinking goes to stderr: it is not the answer."""
        if token.get("thinking") and not self._quiet:
            self._remarks.print(token["thinking"], end="", style="dim italic", markup=False, soft_wrap=True)
            self._thinking = True
        if text := token.get("text"):
            if self._thinking:
                self._remarks.print()
                self._thinking = False
            self._mid_line = not text.endswith("\n")
            if not self._quiet:
                self._text.print(text, end="", markup=False, soft_wrap=True)

    def restart(self, restart: Json) -> None:
        self.end_line()
        self._remark(f"starting over on another machine: {restart['reason']}")

    def end_line(self) -> None:
        if self._mid_line and not self._quiet:
            self._text.print()
        self._mid_line = False

    def _remark(self, words: str) -> None:
        if words != self._last_remark and not self._quiet:
            self._remarks.print(words, style="dim", markup=False, soft_wrap=True)
        self._last_remark = words


async def ask(client: RouterClient, request: Json, narrator: Narrator) -> Json:
    """The ``end`` update of the task: status, worker_name, answer. Interrupted, it cancels the task before it leaves."""
    submitted = await client.post("/route", request)
    task = submitted["task"]
    if submitted.get("warning"):
        narrator.warn(submitted["warning"])
    try:
        return await follow(client, task, narrator)
    except asyncio.CancelledError:
        with suppress(CommandFailed):
            await client.delete(task_path(task))
        raise


async def follow(client: RouterClient, task: str, narrator: Narrator) -> Json:
    """Raises CommandFailed when the stream ends before the task does."""
    names = await machine_names(client)
    async for event in client.events(task_path(task, "stream")):
        data = msgspec.json.decode(event.data)
        match event.name:
            case "status":
                narrator.status(data, names)
            case "token":
                narrator.token(data)
            case "restart":
                narrator.restart(data)
            case "error":
                narrator.end_line()
                raise CommandFailed(str(data.get("message")), hint=f"`headrace explain {task}`")
            case "end":
                narrator.end_line()
                return dict(data)
    narrator.end_line()
    raise CommandFailed(
        f"the router closed the stream before task {task} ended",
        hint=f"the task goes on: `headrace explain {task}`",
        code=Exit.UNREACHABLE,
    )


async def machine_names(client: RouterClient) -> dict[str, str]:
    """id -> name of every machine the router knows; those who share a name are told apart."""
    workers = (await client.get("/workers"))["workers"]
    called = Counter(worker["name"] for worker in workers)
    return {w["id"]: w["name"] if called[w["name"]] == 1 else f"{w['name']} ({w['id']})" for w in workers}


def summary(end: Json) -> str:
    """``smollm2:135m on fast: 32 tokens in 0.51 s, 63.2 tok/s (first after 38 ms); task 01kbq…``; a second line says what is
    wrong with it. Empty where there is no answer: why is the error's to say."""
    status = end["status"]
    if status["state"] != ENDS_WELL:
        return ""
    tokens, times = status.get("tokens") or {}, status.get("times") or {}
    told = f"{status.get('model')} on {end.get('worker_name') or status.get('worker')}"
    output, decode_s = tokens.get("output"), times.get("decode_s")
    told += f": {output} token{'' if output == 1 else 's'}" if output is not None else ": an unknown number of tokens"
    if times.get("total_s") is not None:
        told += f" in {numbers.seconds(times['total_s'])}"
    if output and decode_s:
        told += f", {numbers.rate(output / decode_s)}"
    if times.get("first_token_s") is not None:
        told += f" (first after {numbers.seconds(times['first_token_s'])})"
    told += f"; task {status['task']}"
    remark = REMARKS.get(str(status.get("outcome")))
    if remark is None and status.get("finish_reason") in LENGTH_REASONS:
        remark = AT_LIMIT
    return f"{told}\n{remark}" if remark else told


def rate_hint(end: Json) -> str:
    """How to say what it was worth."""
    return f"👍 or 👎? headrace feedback {end['status']['task']} up, or down"


def check_end(end: Json, *, allow_empty: bool = False) -> None:
    """Raises CommandFailed for every end without an answer's text. A small model does say nothing now and then."""
    status = end["status"]
    if status["state"] != ENDS_WELL:
        why = (
            ": ".join(str(part) for part in (status.get("failure"), status.get("detail")) if part)
            or "no reason was given"
        )
        code = Exit.BUSY if status.get("failure") == "busy" else Exit.FAILED
        raise CommandFailed(
            f"the task {ENDS.get(status['state'], status['state'])}: {why}",
            hint=("`headrace doctor` says what is missing; " if code == Exit.BUSY else "")
            + f"`headrace explain {status['task']}`",
            code=code,
        )
    if status.get("outcome") == "empty" and not allow_empty:
        raise CommandFailed(
            "the answer was empty, which counts as no success", hint=f"`headrace explain {status['task']}`"
        )
