"""What of an answer has a reader had, and what does it still lack at the end?

Tokens are not stored and may be missed on the way; the stored answer has them all. Pure.
"""

from __future__ import annotations

from typing import Any

from schemas.tool_calls import rest as rest_of_calls
from schemas.work import Answer
from services.router.port import TokenUpdate


class Had:
    """The tokens of one attempt as they go out: whoever has had a piece of one attempt takes none of another."""

    def __init__(self) -> None:
        self.any = False
        self._chars = 0
        self._calls: list[dict[str, Any]] = []

    def add(self, update: TokenUpdate) -> None:
        self.any = True
        self._chars += len(update.text)
        if update.tool_calls:
            self._calls += update.tool_calls

    def missed(self, attempt: int, answer: Answer) -> TokenUpdate | None:
        """The rest of it as one token; None where nothing is missing. Who has had nothing gets the whole, even an empty one."""
        rest = answer.text[self._chars :]
        if not self.any:
            return TokenUpdate(
                attempt=attempt, index=0, text=rest, thinking=answer.thinking, tool_calls=answer.tool_calls,
                logprobs=answer.logprobs,
            )  # fmt: skip
        calls = rest_of_calls(self._calls, answer.tool_calls)
        return TokenUpdate(attempt=attempt, index=0, text=rest, tool_calls=calls) if rest or calls else None
