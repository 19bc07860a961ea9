"""How does an answer look in Ollama's form? Encoders only; the token path builds bytes from a prefix made once per model.

Every number is left out where it is unknown, as Ollama leaves out what it does not know; durations are nanoseconds.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from schemas.events import Times, Tokens
from schemas.tool_calls import Joined
from schemas.work import Answer
from services.router.http.ollama_messages import arguments_of, ollama_call
from services.router.port import TaskStatus, TokenUpdate

NS = 1_000_000_000
_encode = msgspec.json.Encoder().encode
_OPEN_END = b',"done":false}\n'


class Frames:
    """The lines of one stream. ``model`` may change until the first piece is out: an attempt may die before it."""

    def __init__(self, model: str, *, chat: bool) -> None:
        self._chat = chat
        self._calls = _Calls()
        self.set_model(model)

    def set_model(self, model: str) -> None:
        self.model = model
        self._head = b'{"model":' + _encode(model) + b',"created_at":"'
        self._middle = b'","message":{"role":"assistant","content":' if self._chat else b'","response":'
        self._tail = b"}" + _OPEN_END if self._chat else _OPEN_END

    def token(self, update: TokenUpdate) -> bytes:
        """A line; none while a tool call is not whole yet."""
        if update.text and not (update.thinking or update.tool_calls or update.logprobs):
            return b"".join((self._head, now().encode(), self._middle, _encode(update.text), self._tail))
        calls = self._calls.add(update.tool_calls)
        if not (update.text or update.thinking or update.logprobs or calls):
            return b""
        frame = self._frame(update.text, update.thinking, calls)
        if update.logprobs:
            frame["logprobs"] = update.logprobs
        return _encode(frame | {"done": False}) + b"\n"

    def still_here(self) -> bytes:
        """A line that says nothing."""
        return b"".join((self._head, now().encode(), self._middle, b'""', self._tail))

    def end(self, status: TaskStatus, answer: Answer | None, told: Any) -> bytes:
        """The calls that were not whole, then the line with ``done``."""
        calls, text = self._calls.rest()
        late = b""
        if calls or text:
            late = _encode(self._frame(text, "", calls) | {"done": False}) + b"\n"
        last = self._frame("", "", []) | ended(status, answer) | {"headrace": told}
        return late + _encode(last) + b"\n"

    def _frame(self, text: str, thinking: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
        return frame(self.model, text, thinking, calls, chat=self._chat)


def whole(model: str, status: TaskStatus, answer: Answer, told: Any, *, chat: bool) -> dict[str, Any]:
    """The reply of a request with ``stream: false``."""
    calls = _Calls()
    said = calls.add(tuple({"index": at, **call} for at, call in enumerate(answer.tool_calls)))
    late, text = calls.rest()
    result = frame(model, answer.text + text, answer.thinking, said + late, chat=chat)
    if answer.logprobs:
        result["logprobs"] = answer.logprobs
    return result | ended(status, answer) | {"headrace": told}


def frame(model: str, text: str, thinking: str, calls: list[dict[str, Any]], *, chat: bool) -> dict[str, Any]:
    more: dict[str, Any] = {"thinking": thinking} if thinking else {}
    if calls:
        more["tool_calls"] = calls
    said = {"message": {"role": "assistant", "content": text, **more}} if chat else {"response": text, **more}
    return {"model": model, "created_at": now(), **said}


def empty(model: str, reason: str, *, chat: bool) -> dict[str, Any]:
    """What an empty request is answered with: ``load`` or ``unload``, which carry no durations."""
    return frame(model, "", "", [], chat=chat) | {"done": True, "done_reason": reason}


def ended(status: TaskStatus, answer: Answer | None) -> dict[str, Any]:
    tokens = answer.tokens if answer is not None else status.tokens or Tokens()
    reason = (answer.finish_reason if answer is not None else status.finish_reason) or "stop"
    return {"done": True, "done_reason": done_reason(reason), **figures(status.times, tokens)}


def done_reason(reason: str) -> str:
    """Ollama says ``stop`` after tool calls as well."""
    return {"tool_calls": "stop", "function_call": "stop", "max_tokens": "length"}.get(reason, reason)


def figures(times: Times | None, tokens: Tokens) -> dict[str, int]:
    """The attempt's own seconds; nothing that nobody measured."""
    times = times or Times()
    named = {
        "total_duration": _ns(times.total_s),
        "load_duration": _ns(times.load_s),
        "prompt_eval_count": tokens.prompt,
        "prompt_eval_duration": _ns(times.prefill_s),
        "eval_count": tokens.output,
        "eval_duration": _ns(times.decode_s),
        "prompt_eval_cached_count": tokens.cached,
    }
    return {name: value for name, value in named.items() if value or (value == 0 and name.endswith("cached_count"))}


def now() -> str:
    """RFC 3339 with microseconds, as Ollama writes it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")[:26] + "Z"


class _Calls:
    """Tool calls as they come, in whatever pieces (case 35): Ollama's clients expect each of them whole, and once."""

    def __init__(self) -> None:
        self._joined = Joined()
        self._sent: set[int] = set()

    def add(self, deltas: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
        """The calls that these pieces make whole: an object that is closed cannot go on."""
        for delta in deltas:
            self._joined.add(delta)
        return [call for call in self._unsent() if call is not None] if deltas else []

    def rest(self) -> tuple[list[dict[str, Any]], str]:
        """At the end: calls without arguments, and as text what never became a call, as Ollama's own parser leaves it."""
        calls: list[dict[str, Any]] = []
        broken: list[str] = []
        for at, call in zip(self._joined.indices, self._joined.whole, strict=True):
            if at in self._sent:
                continue
            if (made := ollama_call(call, len(self._sent))) is not None:
                self._sent.add(at)
                calls.append(made)
            else:
                broken.append(_encode(call["function"]).decode())
        return calls, "\n".join(broken)

    def _unsent(self) -> list[dict[str, Any] | None]:
        made: list[dict[str, Any] | None] = []
        for at, call in zip(self._joined.indices, self._joined.whole, strict=True):
            arguments = call["function"]["arguments"]
            if at not in self._sent and arguments.endswith("}") and arguments_of(arguments) is not None:
                made.append(ollama_call(call, len(self._sent)))
                self._sent.add(at)
        return made


def _ns(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * NS)
