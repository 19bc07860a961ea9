"""What one pass of the dispatcher works with: the state, the live view, the moment, and in whose name it speaks. Values only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from schemas.events import TaskReleased, TaskRouted
from services.router.dispatch.glance import Glance
from services.router.dispatch.live import LEASE_S, Live
from services.router.dispatch.outlook import Outlook
from services.router.dispatch.permits import UNLIMITED, Limits
from services.router.dispatch.releasing import Release
from services.router.dispatch.state import RouterState, Task

REPEAT_S = 1.0
"""How often a cancel or hello is repeated while a credit shows that it is needed."""

Decorate = Callable[[TaskReleased, Release, Task], TaskReleased]
Route = Callable[[Task], TaskRouted | None]


class Stamp(msgspec.Struct, frozen=True):
    """Who says it, when (for display) and with which ids: everything that a pure core must be given."""

    by: str
    at: float
    new_id: Callable[[], str]


class Absence(msgspec.Struct, frozen=True):
    """How long an interactive task waits where nobody is there for it (None: for ever), how long after a machine was told to
    wake, and the names of those that can be."""

    wait_s: float | None = None
    wake_wait_s: float = 180.0
    wakeable: frozenset[str] = frozenset()


class Config(msgspec.Struct, frozen=True):
    """``route`` makes a task's decision, None while it cannot; ``decorate`` adds predictions to a release."""

    route: Route
    decorate: Decorate = lambda released, release, task: released
    limits: Limits = UNLIMITED
    outlook: Outlook | None = None
    lease_s: float = LEASE_S
    start_deadline_s: float = 2.0
    absence: Absence = Absence()


class Turn(msgspec.Struct, frozen=True):
    """One call of ``decide``. ``now`` is heard time; ``epoch`` is ours and in force."""

    state: RouterState
    live: Live
    now: float
    config: Config
    stamp: Stamp
    epoch: int
    glance: Glance

    def envelope(self, cause: str | None = None) -> dict[str, Any]:
        """The fields that all our facts share."""
        stamp = self.stamp
        return {"id": stamp.new_id(), "at": stamp.at, "by": stamp.by, "cause": cause, "epoch": self.epoch}
