"""A file that people edit while the program runs.

Answers "what does it say now, and is that good?". Its content is compared, never its time: an editor puts another file in its
place, a copy keeps an old time. What is refused is said once, and what was in force stays in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from schemas.errors import SettingsError
from services.runtime.logs import logger

log = logger("watch")

EVERY_S = 1.0

T = TypeVar("T")


class Watched(Generic[T]):
    """``parse`` is given the content, or None where there is no file, and raises SettingsError naming the line or the key.

    ``value`` is what is in force. ``problem`` says why the file as it is now is not in force; None when it is.
    """

    def __init__(self, path: Path, parse: Callable[[bytes | None], T]) -> None:
        """Raises SettingsError: a program does not start with a file that it cannot use."""
        self.path, self._parse = path, parse
        self._seen = _read(path)
        self.value: T = parse(self._seen)
        self.problem: str | None = None

    def look(self) -> bool:
        """Read it again; True where another content came into force, or the one in force came back."""
        return self._saw(_attempt(self.path))

    async def run(self, changed: Callable[[T], None]) -> None:
        """For ever: look each second, off the loop (a disk may be slow), and hand over each value that comes into force."""
        while True:
            await asyncio.sleep(EVERY_S)
            if self._saw(await asyncio.to_thread(_attempt, self.path)):
                changed(self.value)

    def _saw(self, content: bytes | SettingsError | None) -> bool:
        if isinstance(content, SettingsError):
            self._refuse(content)  # and what was seen last stays: unreadable for a moment is no change
            return False
        if content == self._seen and not (self.problem or "").startswith(UNREADABLE):
            return False
        self._seen = content
        try:
            self.value = self._parse(content)
        except SettingsError as error:
            self._refuse(error)
            return False
        self.problem = None
        log.info("settings in force", action="settings_in_force", path=str(self.path))
        return True

    def _refuse(self, error: SettingsError) -> None:
        if str(error) != self.problem:
            self.problem = str(error)
            log.error("settings refused, the former ones stay", action="settings_refused", error=self.problem)


UNREADABLE = "cannot read "


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsError(f"{UNREADABLE}{path}: {error.strerror}") from error


def _attempt(path: Path) -> bytes | SettingsError | None:
    try:
        return _read(path)
    except SettingsError as error:
        return error
