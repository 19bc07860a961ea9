"""The whole answer out of its pieces.

Answers "what did the backend say altogether?". Pure: no text is changed, none is judged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from schemas.tool_calls import Joined
from services.worker.backends.port import Chunk, Finish
from services.worker.timings import Seen


@dataclass
class Assembled:
    """``pieces`` counts what came: backends send one token each, so it stands in where nobody counts."""

    pieces: int = 0
    _text: list[str] = field(default_factory=list)
    _thinking: list[str] = field(default_factory=list)
    _calls: Joined = field(default_factory=Joined)
    _logprobs: list[dict[str, Any]] = field(default_factory=list)

    def add(self, chunk: Chunk) -> None:
        if not chunk.is_token:
            return
        self.pieces += 1
        if chunk.text:
            self._text.append(chunk.text)
        if chunk.thinking:
            self._thinking.append(chunk.thinking)
        for delta in chunk.tool_calls:
            self._calls.add(delta)
        self._logprobs += chunk.logprobs

    @property
    def text(self) -> str:
        return "".join(self._text)

    @property
    def thinking(self) -> str:
        return "".join(self._thinking)

    @property
    def tool_calls(self) -> tuple[dict[str, Any], ...]:
        """Whole calls in OpenAI's form, in the order of their index, however they were split (case 35)."""
        return self._calls.whole

    @property
    def logprobs(self) -> tuple[dict[str, Any], ...]:
        return tuple(self._logprobs)


class Ran(msgspec.Struct, kw_only=True):
    """A run that the backend itself called finished."""

    assembled: Assembled
    finish: Finish
    seen: Seen
