"""Two records of one decision, field by field.

Answers "where does what was computed again differ from what the log has?". A number must be equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from schemas.events import TaskReleased, TaskRouted


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One field that came out otherwise: where, what the log has, what was computed."""

    field: str
    recorded: Any
    computed: Any

    @property
    def words(self) -> str:
        return f"{self.field}: the log has {_short(self.recorded)}, computed again it is {_short(self.computed)}"


def differences(recorded: TaskRouted | TaskReleased, computed: TaskRouted | TaskReleased) -> list[Difference]:
    """Field by field; numbers must be equal to the last bit. Of a removal only the code counts: its words tell ages; of a choice
    its pair: its words only repeat the numbers, and a later version may put them otherwise."""
    return list(_differ(_plain(recorded), _plain(computed), ""))


def _plain(decision: TaskRouted | TaskReleased) -> Any:
    plain = msgspec.to_builtins(decision)
    for removal in plain.get("removed", ()):
        removal["reason"] = removal["reason"].partition(":")[0]
    if plain.get("choice"):
        del plain["choice"]["reason"]
    return plain


def _differ(recorded: Any, computed: Any, where: str) -> Iterator[Difference]:
    match recorded, computed:
        case dict(), dict():
            for key in recorded.keys() | computed.keys():
                yield from _differ(recorded.get(key), computed.get(key), f"{where}.{key}" if where else key)
        case list() | tuple(), list() | tuple() if len(recorded) == len(computed):
            for at, (mine, other) in enumerate(zip(recorded, computed, strict=True)):
                yield from _differ(mine, other, f"{where}[{at}]")
        case _ if recorded != computed:
            yield Difference(field=where, recorded=recorded, computed=computed)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
