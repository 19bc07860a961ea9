"""Server-sent events out of text lines.

Answers "which event is complete?". Pure; never interprets the data.
"""

from __future__ import annotations

from typing import NamedTuple


class ServerEvent(NamedTuple):
    name: str
    data: str


class EventParser:
    """Feed it one line at a time (without its line end); an event comes back when its blank line arrives."""

    def __init__(self) -> None:
        self._name = ""
        self._data: list[str] = []

    def line(self, text: str) -> ServerEvent | None:
        """Comment lines (keep-alives) and unknown fields are skipped, as the standard says."""
        if not text:
            event = ServerEvent(self._name or "message", "\n".join(self._data)) if self._data else None
            self._name, self._data = "", []
            return event
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            self._name = value
        elif field == "data":
            self._data.append(value)
        return None
