"""Wire messages that are not facts: request bodies, work items, answers, tokens, control.

Answers "what travels between router and worker?". Bodies and answers hold the users' text; they live in TASKS and expire.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import msgspec

from schemas.errors import InvalidEvent
from schemas.events import Kind, Options, Outcome, Tokens, Urgency


class Wire(msgspec.Struct, frozen=True, kw_only=True):
    """A message between two of our processes; unknown fields are skipped, so old and new ones understand each other."""


class Body(Wire, frozen=True, kw_only=True):
    """What a client asked, passed on whole. ``messages`` are OpenAI-style dicts; ``extra`` holds what we do not interpret
    (tools, response_format, stop, think, ...) and goes to the backend as it came. ``inputs`` are an embedding's texts."""

    messages: tuple[dict[str, Any], ...] = ()
    prompt: str | None = None
    inputs: tuple[str, ...] = ()
    extra: dict[str, Any] = {}


class WorkItem(Wire, frozen=True, kw_only=True):
    """One attempt to make; published under ``subjects.item_id``. Everything the terminal fact must say travels with it."""

    task: str
    attempt: int
    epoch: int
    model: str
    capability: str
    lane: str
    holders: tuple[str, ...] = ()
    domain: str
    language: str | None = None
    kind: Kind = "chat"
    urgency: Urgency = "interactive"
    client: str
    session: str | None = None
    options: Options = Options()
    context: int | None = None
    body: str
    timeout_s: float = 3600.0


class Answer(Wire, frozen=True, kw_only=True):
    """An attempt's answer, stored before its terminal fact. ``vectors`` are an embedding's. ``logprobs`` has an entry for each
    token in OpenAI's form, where they were asked for and the backend has them. ``stopped_by``: the client's own stop word that
    ended it, where the backend says which."""

    task: str
    attempt: int
    model: str
    worker: str
    text: str = ""
    thinking: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    logprobs: tuple[dict[str, Any], ...] = ()
    vectors: tuple[tuple[float, ...], ...] = ()
    finish_reason: str | None = None
    stopped_by: str | None = None
    outcome: Outcome = "ok"
    tokens: Tokens = Tokens()


class TokenChunk(Wire, frozen=True, kw_only=True):
    """A piece of an answer, on ``tok.<worker>.<task>``; ``index`` counts from 0 within the attempt, without holes."""

    task: str
    attempt: int
    index: int
    text: str = ""
    thinking: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    logprobs: tuple[dict[str, Any], ...] = ()


class Control(Wire, frozen=True, kw_only=True):
    """Router to worker on ``ctl.<worker>``. ``hello`` lists the consumers that are confirmed (``armable``) and asks for a
    credit and a report; it may get lost, so routers repeat it. ``cancel`` names the attempt; ``pull`` and ``stop_pull`` a
    ``pull``, the former with the backend's name of a model. Other commands name nothing."""

    command: Literal["hello", "cancel", "pause", "resume", "drain", "pull", "stop_pull"]
    router: str = ""
    epoch: int = 0
    task: str | None = None
    attempt: int | None = None
    armable: tuple[str, ...] = ()
    want_report: bool = False
    pull: str | None = None
    model: str | None = None


PullFault = Literal["not_found", "rejected", "unavailable"]


class PullProgress(Wire, frozen=True, kw_only=True):
    """How far a download is, on ``pull.<worker>.<pull>``; said again every two seconds, so that silence means that the machine
    is gone. ``total`` and ``completed`` are bytes of the file ``digest``. The last one is ``done``, or has the ``error``, and as
    ``code`` whose it is: there is no such model, the request cannot be met there, or it may be later."""

    status: str = ""
    digest: str | None = None
    total: int | None = None
    completed: int | None = None
    done: bool = False
    error: str | None = None
    code: PullFault | None = None


class CancelTask(Wire, frozen=True, kw_only=True):
    """One router to all on ``rpc.router.cancel``: only the dispatcher can, and readers may sit at another."""

    task: str
    reason: str = ""


W = TypeVar("W", bound=Wire)


def encode_wire(message: Wire) -> bytes:
    return msgspec.json.encode(message)


def decode_wire(data: bytes, kind: type[W]) -> W:
    """Raises InvalidEvent naming the kind and what is wrong with the bytes."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidEvent(f"not a {kind.__name__}: {error}") from error
