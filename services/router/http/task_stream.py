"""How does a task look while it lives, in our own words? One SSE event for each update (docs/http.md)."""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.work import Answer
from services.router.http.headers import worker_name
from services.router.http.live import SSE_HEADERS, Line, Live
from services.router.http.problems import Problem, native_form, respond
from services.router.port import EndUpdate, RestartUpdate, RouterPort, StatusUpdate, TaskStatus, TokenUpdate, Update

_encode = msgspec.json.Encoder().encode


class TaskStream(Live):
    """``GET /task/{id}/stream``: every update under its own event name."""

    async def on_update(self, line: Line, update: Update) -> bool:
        if not line.is_open:
            await self.begin(line)
        match update:
            case TokenUpdate():
                await line.write(b"event: token\ndata: " + _encode(token_piece(update)) + b"\n\n")
            case StatusUpdate(status=status):
                await line.write(sse_event("status", status))
            case RestartUpdate():
                await line.write(sse_event("restart", {"attempt": update.attempt, "reason": update.reason}))
            case EndUpdate():
                await line.write(sse_event("end", end_of(self.router, update.status, update.answer)))
                await line.close()
                return True
        return False

    async def begin(self, line: Line) -> None:
        await line.open({**SSE_HEADERS, "x-headrace-task": self.task})

    async def on_failure(self, line: Line, problem: Problem) -> None:
        if line.is_open:
            await line.write(sse_event("error", native_form(problem)["error"]))
        else:
            response = respond(problem)
            await line.open(dict(response.headers), problem.status)
            await line.write(bytes(response.body))
        await line.close()


def end_of(router: RouterPort, status: TaskStatus, answer: Answer | None) -> dict[str, Any]:
    return {"status": status, "worker_name": worker_name(router, status.worker), "answer": answer}


def token_piece(update: TokenUpdate) -> dict[str, Any]:
    """Without the fields that are empty, which are most: a token is a few bytes."""
    piece: dict[str, Any] = {"attempt": update.attempt, "index": update.index}
    if update.text:
        piece["text"] = update.text
    if update.thinking:
        piece["thinking"] = update.thinking
    if update.tool_calls:
        piece["tool_calls"] = update.tool_calls
    return piece


def sse_event(name: str, value: Any) -> bytes:
    return b"".join((b"event: ", name.encode(), b"\ndata: ", _encode(value), b"\n\n"))
