"""What a part wrote in its present run: the file holds the former ones too.

Answers "does it say that it is ready, and what did it say last?". Reads the lines of services.runtime.logs, and passes on any
other as it is; it never writes one.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec

TAIL_LINES = 8
"""Of a part that ended without an error of its own: the end of a traceback."""
SAID_LINES = 3
"""Of each part that is not ready: enough to see what it waits for."""
READY = "ready"
"""The action that services.runtime.lifecycle logs when a service has connected everything."""


class PartLog:
    """One part's log file. ``says_ready`` once it has said so in this run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._start = 0
        self._said_ready = False

    def begin(self) -> IO[bytes]:
        """A new run: the file to write to, which the caller closes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        log = self.path.open("ab")
        self._start, self._said_ready = log.tell(), False
        return log

    @property
    def says_ready(self) -> bool:
        if not self._said_ready:
            self._said_ready = any(b"ready" in line and _fields(line).get("action") == READY for line in self._lines())
        return self._said_ready

    def last_words(self) -> str:
        """Why the run ended: the last error that it logged, else its last lines."""
        lines = self._lines()
        errors = [error for line in lines if (error := _error(_fields(line)))]
        return errors[-1] if errors else "\n".join(line.decode(errors="replace") for line in lines[-TAIL_LINES:])

    def tail(self) -> str:
        """Its last lines as people read them, in one."""
        return " | ".join(_plain(line) for line in self._lines()[-SAID_LINES:]) or "nothing"

    def _lines(self) -> list[bytes]:
        with suppress(OSError), self.path.open("rb") as log:
            log.seek(self._start)
            return log.read().splitlines()
        return []


def _fields(line: bytes) -> dict[str, Any]:
    """Of a JSON line of ours; empty for any other."""
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _error(fields: dict[str, Any]) -> str | None:
    return str(fields.get("error") or fields.get("event")) if fields.get("level") in ("error", "critical") else None


def _plain(line: bytes) -> str:
    """When, what, and its error."""
    fields = _fields(line)
    if "event" not in fields:
        return line.decode(errors="replace")
    at = str(fields.get("timestamp", "")).partition("T")[2][:8]
    return " ".join(str(part) for part in (at, fields["event"], fields.get("error")) if part)
