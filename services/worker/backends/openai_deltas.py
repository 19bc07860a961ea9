"""The pieces of an OpenAI-compatible stream that servers write differently: tool calls and probabilities, in one form.

Answers "which call is this a piece of?". It never looks into a call's arguments.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import msgspec


class Calls:
    """Each delta with an index and each call with an id, whatever the server leaves out: clients join deltas by the one and
    answer by the other (case 35)."""

    def __init__(self) -> None:
        self._ids: dict[int, str] = {}

    @property
    def any(self) -> bool:
        return bool(self._ids)

    def numbered(self, deltas: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
        return tuple(self._numbered(delta) for delta in deltas)

    def _numbered(self, delta: dict[str, Any]) -> dict[str, Any]:
        function = dict(delta.get("function") or {})
        if not isinstance(function.get("arguments", ""), str):
            function["arguments"] = msgspec.json.encode(function["arguments"] or {}).decode()
        index, identity = delta.get("index"), delta.get("id")
        if not isinstance(index, int) or index < 0:
            index = self._index_of(identity, begins=bool(function.get("name")))
        if index in self._ids:
            return {"index": index, "function": function}
        self._ids[index] = identity or f"call_{uuid.uuid4().hex[:24]}"
        return {"index": index, "id": self._ids[index], "type": "function", "function": function}

    def _index_of(self, identity: str | None, *, begins: bool) -> int:
        """Of a delta without one: its id's, a new one where it begins a call, else that of the call before."""
        known = next((index for index, known in self._ids.items() if known == identity), None)
        if known is not None:
            return known
        last = max(self._ids, default=-1)
        return last + 1 if identity or begins or not self._ids else last


def logprobs_of(logprobs: Any) -> tuple[dict[str, Any], ...]:
    """One entry a token; the older form of plain completions, with its parallel lists, in the newer one."""
    if not isinstance(logprobs, dict):
        return ()
    if "tokens" not in logprobs:
        return tuple(logprobs.get("content") or ())
    tokens, values = logprobs.get("tokens") or (), logprobs.get("token_logprobs") or ()
    tops = logprobs.get("top_logprobs") or [None] * len(tokens)
    return tuple(
        {
            "token": token,
            "logprob": value,
            "bytes": list(str(token).encode()),
            "top_logprobs": [{"token": name, "logprob": likely} for name, likely in (top or {}).items()],
        }
        for token, value, top in zip(tokens, values, tops, strict=False)
    )
