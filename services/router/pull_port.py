"""The part of the router's port that has models fetched, as plain values (``port``)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from schemas.work import PullProgress


class PullPort(Protocol):
    def pull(self, worker: str, model: str) -> AbstractAsyncContextManager[AsyncIterator[PullProgress]]:
        """Let a worker (its id) fetch a model, by the name that its backend knows. The words end with one that is ``done`` or
        has an ``error``; a machine that falls silent is an error. Leaving earlier ends the download."""
        ...
