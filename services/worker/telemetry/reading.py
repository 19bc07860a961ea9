"""A set of readings with the reasons for those that are missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Readings(msgspec.Struct, kw_only=True):
    """``values`` holds only what was read; ``unreadable`` says why another field is absent. No field is in both."""

    values: dict[str, Any] = {}
    unreadable: dict[str, str] = {}

    def take(self, field: str, read: Callable[[], T | None], reason: str = "not offered by this system") -> T | None:
        """Read one field on its own: its failure is its reason and touches no other field."""
        try:
            value = read()
        except Exception as error:  # noqa: BLE001 - whatever a driver raises, the heartbeat must go out
            self.unreadable[field] = f"{type(error).__name__}: {error}"[:200]
            return None
        if value is None:
            self.unreadable[field] = reason
        else:
            self.values[field] = value
        return value

    def add(self, other: Readings) -> None:
        self.values |= other.values
        self.unreadable |= other.unreadable
