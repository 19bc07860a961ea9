"""How does an answer look as Anthropic's Messages have it? Blocks for the whole, events for the stream.

Where a backend did not count tokens the numbers are estimates: this form has no word for unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from schemas.events import Tokens
from schemas.language import estimate_tokens
from schemas.work import Answer
from services.router.http.chat_reply import Told
from services.router.http.problems import Problem, anthropic_form
from services.router.port import TaskStatus, TokenUpdate

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.decode
REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def message_of(answer: Answer, told: Told, prompt_tokens: int) -> dict[str, Any]:
    """The reply of a request without ``stream``. ``prompt_tokens`` is the estimate."""
    blocks: list[dict[str, Any]] = []
    if answer.thinking:
        blocks.append({"type": "thinking", "thinking": answer.thinking, "signature": ""})
    if answer.text or not answer.tool_calls:
        blocks.append({"type": "text", "text": answer.text})
    blocks += [_tool_use(call, at) for at, call in enumerate(answer.tool_calls)]
    return {
        **_head(answer.task, answer.model),
        "content": blocks,
        "stop_reason": stop_reason(answer, None),
        "stop_sequence": answer.stopped_by,
        "usage": usage_of(answer.tokens, prompt_tokens, answer.thinking + answer.text),
        "headrace": told,
    }


def stop_reason(answer: Answer | None, reason: str | None) -> str:
    """``tool_use`` is what clients decide by; some backends say ``stop`` there."""
    reason = answer.finish_reason if answer is not None else reason
    if answer is not None and answer.tool_calls and reason in (None, "stop"):
        return "tool_use"
    if answer is not None and answer.stopped_by is not None and reason == "stop":
        return "stop_sequence"
    return REASONS.get(reason or "stop", "end_turn")


def usage_of(tokens: Tokens | None, prompt_tokens: int, text: str) -> dict[str, Any]:
    """Anthropic's input tokens are those that were not read from a cache."""
    known = tokens or Tokens()
    cached = known.cached or 0
    prompt = known.prompt if known.prompt is not None else prompt_tokens
    return {
        "input_tokens": max(0, prompt - cached),
        "output_tokens": known.output if known.output is not None else estimate_tokens(text),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
    }


def _head(task: str, model: str) -> dict[str, Any]:
    return {"id": f"msg_{task}", "type": "message", "role": "assistant", "model": model}


def _tool_use(call: dict[str, Any], at: int) -> dict[str, Any]:
    function = call.get("function") or {}
    return {
        "type": "tool_use",
        "id": call.get("id") or f"toolu_{at}",
        "name": function.get("name") or "",
        "input": _object(function.get("arguments") or "{}"),
    }


def _object(arguments: str) -> dict[str, Any]:
    """What a model wrote that is no JSON object is shown as it is, for the client to complain about."""
    try:
        value = _decode(arguments)
    except msgspec.DecodeError:
        value = None
    return value if isinstance(value, dict) else {"_invalid": arguments}


class MessageEvents:
    """A message's stream: a Speech. One block is open at a time; what comes beside an open call waits until that is whole."""

    def __init__(self, task: str, prompt_tokens: int) -> None:
        self._task, self._prompt_tokens, self._model = task, prompt_tokens, ""
        self._blocks = 0
        self._open: str | None = None
        self._calls: dict[int, _Call] = {}
        self._held: list[tuple[str, str]] = []
        self._prefix = b""
        self._texts: list[str] = []

    def set_model(self, model: str) -> None:
        self._model = model

    def begin(self) -> bytes:
        usage = {**usage_of(None, self._prompt_tokens, ""), "output_tokens": 0}
        message = {
            **_head(self._task, self._model), "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage,
        }  # fmt: skip
        return _event("message_start", message=message) + _event("ping")

    def moved(self, status: TaskStatus) -> bytes:
        return b""

    def token(self, update: TokenUpdate) -> bytes:
        if self._open == "text" and update.text and not (update.thinking or update.tool_calls):
            return self._piece(update.text)
        pieces = [(kind, text) for kind, text in (("thinking", update.thinking), ("text", update.text)) if text]
        said: list[bytes] = []
        if self._open == "call" and pieces:
            self._held += pieces
            said.append(self._go_on())
        else:
            for kind, text in pieces:
                said += [self._begin(kind), self._piece(text)]
        said += [self._call(delta) for delta in update.tool_calls]
        return b"".join(said)

    def end(self, answer: Answer | None, reason: str | None, told: Told) -> bytes:
        first = self._go_on(is_last=True) if self._calls else b""
        if not self._blocks:
            first = self._begin("text")
        tokens = answer.tokens if answer is not None else None
        why = stop_reason(answer, reason)
        if answer is None and self._calls and why == "end_turn":
            why = "tool_use"
        delta = {"stop_reason": why, "stop_sequence": answer.stopped_by if answer is not None else None}
        usage = usage_of(tokens, self._prompt_tokens, "".join(self._texts))
        return b"".join(
            (
                first,
                self._close(),
                _event("message_delta", delta=delta, usage=usage, headrace=told),
                _event("message_stop"),
            )
        )

    def tail(self, tokens: Tokens | None) -> bytes:
        return b""

    def error(self, problem: Problem) -> bytes:
        return b"event: error\ndata: " + _encode(anthropic_form(problem)) + b"\n\n"

    def _begin(self, kind: str) -> bytes:
        """Open a block of this kind, unless it is."""
        if self._open == kind:
            return b""
        block = {"type": kind, kind: ""} | ({"signature": ""} if kind == "thinking" else {})
        said = self._close() + _event("content_block_start", index=self._blocks, content_block=block)
        self._open = kind
        self._prefix = _delta_prefix(self._blocks, f"{kind}_delta", kind)
        self._blocks += 1
        return said

    def _piece(self, text: str) -> bytes:
        self._texts.append(text)
        return b"".join((self._prefix, _encode(text), b"}}\n\n"))

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        said = b""
        if self._open == "thinking":
            delta = {"type": "signature_delta", "signature": ""}
            said = _event("content_block_delta", index=self._blocks - 1, delta=delta)
        self._open = None
        return said + _event("content_block_stop", index=self._blocks - 1)

    def _call(self, delta: dict[str, Any]) -> bytes:
        index, function = delta.get("index", len(self._calls)), delta.get("function") or {}
        if index not in self._calls:
            self._calls[index] = _Call(id=delta.get("id") or f"toolu_{index}", name=function.get("name") or "")
        self._calls[index].arguments += function.get("arguments") or ""
        return self._go_on()

    def _go_on(self, *, is_last: bool = False) -> bytes:
        """What can be said of the calls and of what waits behind them: one goes on until it is whole, since a block that was
        closed cannot be opened again."""
        said: list[bytes] = []
        for call in self._calls.values():
            if call.is_closed:
                continue
            said.append(self._speak_of(call))
            if not is_last and not (self._waits_behind(call) and call.is_whole):
                return b"".join(said)
            said.append(self._close())
            call.is_closed = True
        for kind, text in self._held:
            said += [self._begin(kind), self._piece(text)]
        self._held.clear()
        return b"".join(said)

    def _waits_behind(self, call: _Call) -> bool:
        return bool(self._held) or next(reversed(self._calls.values())) is not call

    def _speak_of(self, call: _Call) -> bytes:
        said = b""
        if call.block is None:
            call.block = self._blocks
            block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
            said = self._close() + _event("content_block_start", index=self._blocks, content_block=block)
            self._open = "call"
            self._blocks += 1
        rest = call.arguments[call.sent :]
        if not rest:
            return said
        call.sent += len(rest)
        prefix = _delta_prefix(call.block, "input_json_delta", "partial_json")
        return b"".join((said, prefix, _encode(rest), b"}}\n\n"))


@dataclass
class _Call:
    """A call of a stream, as far as it came and as far as it was told."""

    id: str
    name: str
    arguments: str = ""
    sent: int = 0
    block: int | None = None
    is_closed: bool = False

    @property
    def is_whole(self) -> bool:
        """Nothing can follow an object's end."""
        try:
            return isinstance(_decode(self.arguments), dict)
        except msgspec.DecodeError:
            return False


def _delta_prefix(index: int, kind: str, field: str) -> bytes:
    head = _encode({"type": "content_block_delta", "index": index, "delta": {"type": kind}})[:-2]
    return b"".join((b"event: content_block_delta\ndata: ", head, b',"', field.encode(), b'":'))


def _event(name: str, /, **fields: Any) -> bytes:
    return b"".join((b"event: ", name.encode(), b"\ndata: ", _encode({"type": name, **fields}), b"\n\n"))
