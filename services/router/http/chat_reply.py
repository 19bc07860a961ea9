"""How does an answer look in OpenAI's form? Encoders only; the token path builds bytes from a prefix made once per model.

Counts that the backend did not report are left out, never sent as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from schemas.events import Tokens
from schemas.work import Answer
from services.router.http.chat_status import Statuses
from services.router.http.problems import Problem, openai_form
from services.router.port import TaskStatus, TokenUpdate

DONE = b"data: [DONE]\n\n"

_encode = msgspec.json.Encoder().encode
_TAIL = b'},"finish_reason":null}]}\n\n'
_TAIL_WITH = b',"finish_reason":null}]}\n\n'


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """Our own object in each reply: who really answered, and why."""

    task: str
    domain: str | None
    model: str | None
    worker: str | None
    worker_name: str | None
    reason: str | None
    attempt: int
    outcome: str | None


class Chunks:
    """The chunks of one choice. ``model`` may change until the first piece is out: an attempt may die before it.

    ``usage`` adds the last chunk that counts tokens; ``statuses`` are for Open WebUI alone."""

    def __init__(
        self,
        task: str,
        created: int,
        model: str = "",
        *,
        index: int = 0,
        usage: bool = False,
        statuses: Statuses | None = None,
    ) -> None:
        self._task = task
        self._created = created
        self._index, self._usage, self._statuses = index, usage, statuses
        self._said_role = self._said_calls = False
        self._next_tool = 0
        self.model = ""
        if model:
            self.set_model(model)

    def begin(self) -> bytes:
        return b""

    def moved(self, status: TaskStatus) -> bytes:
        return self._statuses.said(status) if self._statuses is not None else b""

    def set_model(self, model: str) -> None:
        if model == self.model:
            return
        self.model = model
        head = {
            "id": completion_id(self._task),
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": model,
        }
        self._head = b"data: " + _encode(head)[:-1] + b',"choices":['
        self._delta = self._head + b'{"index":%d,"delta":{' % self._index
        self._content = self._delta + b'"content":'

    def token(self, update: TokenUpdate) -> bytes:
        """One piece: content, reasoning_content or tool call deltas."""
        plain = not (update.thinking or update.tool_calls or update.logprobs)
        if self._said_role and update.text and plain:
            return b"".join((self._content, _encode(update.text), _TAIL))
        delta: dict[str, Any] = {}
        if not self._said_role:
            delta["role"] = "assistant"
            self._said_role = True
        if update.thinking:
            delta["reasoning_content"] = update.thinking
        if update.text or not (update.thinking or update.tool_calls):
            delta["content"] = update.text
        if update.tool_calls:
            self._said_calls = True
            delta["tool_calls"] = [self._tool_delta(call) for call in update.tool_calls]
        if update.logprobs:
            logprobs = _encode({"logprobs": {"content": update.logprobs, "refusal": None}})[1:-1]
            return b"".join((self._delta, _encode(delta)[1:-1], b"},", logprobs, _TAIL_WITH))
        return b"".join((self._delta, _encode(delta)[1:-1], _TAIL))

    def end(self, answer: Answer | None, reason: str | None, told: Told) -> bytes:
        """The last chunk with a choice; it carries our object."""
        reason = finish_reason(answer) if answer is not None else reason or "stop"
        reason = "tool_calls" if self._said_calls and reason == "stop" else reason
        choice = _encode({"index": self._index, "delta": {}, "finish_reason": reason})
        return b"".join((self._head, choice, b'],"headrace":', _encode(told), b"}\n\n"))

    def tail(self, tokens: Tokens | None) -> bytes:
        if not self._usage:
            return DONE
        return b"".join((self._head, b'],"usage":', _encode(usage_of(tokens)), b"}\n\n", DONE))

    def error(self, problem: Problem) -> bytes:
        return error_chunk(problem) + DONE

    def _tool_delta(self, call: dict[str, Any]) -> dict[str, Any]:
        """A backend that sends whole calls (Ollama) gives no index; clients join deltas by it."""
        if "index" in call:
            return call
        numbered = {"index": self._next_tool, "type": "function", **call}
        self._next_tool += 1
        return numbered


def completion(answers: Sequence[Answer], created: int, told: Told, tokens: Tokens | None) -> dict[str, Any]:
    """The reply of a request without ``stream``: one choice for each answer."""
    return {
        "id": completion_id(told.task),
        "object": "chat.completion",
        "created": created,
        "model": answers[0].model,
        "choices": [_choice(at, answer) for at, answer in enumerate(answers)],
        "usage": usage_of(tokens),
        "headrace": told,
    }


def _choice(index: int, answer: Answer) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if answer.thinking:
        message["reasoning_content"] = answer.thinking
    if answer.tool_calls:
        message["content"] = answer.text or None
        message["tool_calls"] = whole_calls(answer.tool_calls)
    logprobs = {"content": answer.logprobs, "refusal": None} if answer.logprobs else None
    return {"index": index, "message": message, "finish_reason": finish_reason(answer), "logprobs": logprobs}


def error_chunk(problem: Problem) -> bytes:
    return b"data: " + _encode(openai_form(problem)) + b"\n\n"


def completion_id(task: str) -> str:
    return f"chatcmpl-{task}"


def finish_reason(answer: Answer) -> str:
    """OpenAI's clients decide by ``tool_calls`` whether to run them; Ollama says ``stop`` there."""
    reason = answer.finish_reason or "stop"
    return "tool_calls" if answer.tool_calls and reason == "stop" else reason


def whole_calls(calls: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "function", **{key: value for key, value in call.items() if key != "index"}} for call in calls]


def usage_of(tokens: Tokens | None) -> dict[str, Any] | None:
    """None unless both counts are known: OpenAI's form has no word for unknown inside."""
    if tokens is None or tokens.prompt is None or tokens.output is None:
        return None
    usage: dict[str, Any] = {
        "prompt_tokens": tokens.prompt,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.prompt + tokens.output,
    }
    if tokens.cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": tokens.cached}
    if tokens.thinking is not None:
        usage["completion_tokens_details"] = {"reasoning_tokens": tokens.thinking}
    return usage
