"""Who is this worker? An id in its data directory, never a host name, so that a new name does not split its statistics.

The directory is locked while the worker lives: two processes under one id would arm each other's pulls.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import IO

from schemas.errors import SettingsError
from services.runtime.ids import new_id

ID_FILE = "worker-id"
LOCK_FILE = "worker.lock"


class WorkerIdentity:
    """``id`` survives restarts and renames. ``release`` gives the directory free."""

    def __init__(self, id_: str, lock: IO[str]) -> None:
        self.id = id_
        self._lock = lock

    def release(self) -> None:
        self._lock.close()


def claim_identity(data_dir: Path) -> WorkerIdentity:
    """Raises SettingsError where another worker lives in ``data_dir``, or it cannot be written."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        lock = (data_dir / LOCK_FILE).open("w")
    except OSError as error:
        raise SettingsError(
            f"data_dir: cannot write to {data_dir}: {error.strerror}; choose another with --data"
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.close()
        raise SettingsError(f"data_dir: another worker is using {data_dir}; give each its own with --data") from error
    file = data_dir / ID_FILE
    if not file.exists():
        partial = file.with_suffix(".partial")
        partial.write_text(f"w-{new_id()}")
        partial.rename(file)
    return WorkerIdentity(file.read_text().strip(), lock)
