"""The files of a projection: the lock, the live file, the snapshot, and what was set aside.

Answers "which file is used for what, and how is it copied?". Only one process may have the live file open, and nobody else
is ever pointed at it: analysts open the snapshot. The live file is never opened here for reading or copying [closing *any*
descriptor of its inode silently drops DuckDB's own lock]: a child process copies it, and our own lock stands beside it.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from schemas.errors import StoreError


class Files:
    """The paths in a projector's directory. ``aside`` holds the last file that could not be used."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.live = directory / "live.duckdb"
        self.snapshot = directory / "snapshot.duckdb"
        self.aside = directory / "aside.duckdb"
        self._lock: int | None = None

    def lock(self) -> None:
        """Raises StoreError where another projector has this directory."""
        self.directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.directory / "projector.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            raise StoreError(
                f"{self.directory} is in use by another projector; stop it, or give this one its own --data directory"
            ) from error
        self._lock = handle

    def unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def publish_snapshot(self) -> None:
        """Copy the checkpointed live file and put it in the snapshot's place. Readers of the old one keep it."""
        fresh = self.directory / "snapshot.tmp"
        _copy(self.live, fresh)
        _sync(fresh)
        os.replace(fresh, self.snapshot)
        _sync(self.directory)

    def restore_snapshot(self) -> bool:
        """Make the live file from the snapshot; False where there is none."""
        if not self.snapshot.exists():
            return False
        _copy(self.snapshot, self.live)
        return True

    def set_aside(self) -> None:
        """Put the live file out of the way, in the place of the last one that was; it is never deleted unseen at once."""
        for suffix in ("", ".wal"):
            source, target = Path(f"{self.live}{suffix}"), Path(f"{self.aside}{suffix}")
            target.unlink(missing_ok=True)
            if source.exists():
                source.rename(target)


def _copy(source: Path, target: Path) -> None:
    reflink = ["--reflink=auto"] if sys.platform == "linux" else []
    done = subprocess.run(["cp", *reflink, str(source), str(target)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StoreError(f"cannot copy {source.name} to {target}: {done.stderr.strip()}; is the disk full?")


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
