"""Tool calls out of their pieces, in OpenAI's form, and what a reader of some pieces still lacks of the whole.

Answers "which calls are these, whole?" for the worker that stores them and the router whose readers may have missed some. Pure;
arguments are texts and are never parsed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Call = dict[str, Any]


class Joined:
    """Deltas joined by their ``index``; one without an index is a call of its own."""

    def __init__(self, deltas: Iterable[Call] = ()) -> None:
        self._calls: dict[int, Call] = {}
        for delta in deltas:
            self.add(delta)

    def add(self, delta: Call) -> None:
        index = delta.get("index")
        if not isinstance(index, int):
            index = max(self._calls, default=-1) + 1
        call = self._calls.setdefault(
            index, {"id": None, "type": "function", "function": {"name": "", "arguments": ""}}
        )
        call["id"] = delta.get("id") or call["id"]
        function = delta.get("function") or {}
        call["function"]["name"] += function.get("name") or ""
        call["function"]["arguments"] += function.get("arguments") or ""

    @property
    def whole(self) -> tuple[Call, ...]:
        return tuple(self._calls[index] for index in sorted(self._calls))

    @property
    def indices(self) -> tuple[int, ...]:
        return tuple(sorted(self._calls))


def together(deltas: Iterable[Call]) -> tuple[Call, ...]:
    """Pieces of one call as one piece: OpenAI writes no call twice into a chunk, and many a client reads the first alone."""
    pieces: dict[int, Call] = {}
    for at, delta in enumerate(deltas):
        index = delta.get("index")
        key = index if isinstance(index, int) else -1 - at
        before, function = pieces.get(key), delta.get("function") or {}
        if before is None:
            pieces[key] = {**delta, "function": dict(function)} if "function" in delta else delta
            continue
        said = before.get("function") or {}
        arguments = (said.get("arguments") or "") + (function.get("arguments") or "")
        pieces[key] = before | {"function": {**function, **said, "arguments": arguments}}
    return tuple(pieces.values())


def rest(sent: Iterable[Call], whole: Sequence[Call]) -> tuple[Call, ...]:
    """The deltas that make ``whole`` of what was sent; a call of which nothing was sent comes in one piece.

    ``whole`` has its calls in the order of their index; those sent may lack any, at the end of the arguments or altogether.
    """
    joined = Joined(sent)
    had = dict(zip(joined.indices, joined.whole, strict=True))
    free = (index for index in range(len(whole) + len(had)) if index not in had)
    known = {call["id"]: index for index, call in had.items() if call["id"] is not None}
    missing: list[Call] = []
    for at, call in enumerate(whole):
        index = known.get(call.get("id"), at if at in had and call.get("id") is None else None)
        if index is None:
            missing.append({"index": next(free), **call})
            continue
        arguments = (call.get("function") or {}).get("arguments") or ""
        sent_of_it = had[index]["function"]["arguments"]
        if len(arguments) > len(sent_of_it):
            missing.append({"index": index, "function": {"arguments": arguments[len(sent_of_it) :]}})
    return tuple(missing)
