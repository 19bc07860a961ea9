"""What the dispatcher wants done, as values. The shell does it; the simulator does it; the engine never does anything.

Every action has a ``key`` that is unique while it is on its way, so that the engine never asks twice for what is pending.
"""

from __future__ import annotations

from typing import Any

import msgspec

from schemas.events import AnyEvent
from schemas.work import Control, WorkItem
from services.router.dispatch.state import Key


class Publish(msgspec.Struct, frozen=True):
    """Store ``event`` in EVENTS under ``msg_id``. "Duplicate" is fine: whoever was first is in the log, and the fold reads it."""

    event: AnyEvent
    msg_id: str

    @property
    def key(self) -> str:
        return self.msg_id


class PutItem(msgspec.Struct, frozen=True):
    """Put ``item`` on ``subject`` under ``msg_id``, unless ``look_first`` and it is there already (after a restart). Then the
    shell records ``live.items[attempt] = (sequence, now)``."""

    attempt: Key
    item: WorkItem
    subject: str
    msg_id: str
    look_first: bool

    @property
    def key(self) -> str:
        return f"item:{self.msg_id}"


class DeleteItem(msgspec.Struct, frozen=True):
    """Delete the item by its sequence: a purge would keep its place in the group for an ack_wait."""

    attempt: Key
    seq: int

    @property
    def key(self) -> str:
        return f"delete:{self.attempt[0]}.{self.attempt[1]}"


class Tell(msgspec.Struct, frozen=True):
    """Send ``control`` to ``worker``. It may get lost; the engine repeats it while it is needed."""

    worker: str
    control: Control

    @property
    def key(self) -> str:
        c = self.control
        return f"tell:{self.worker}:{c.command}:{c.task}:{c.attempt}"


class EnsureConsumer(msgspec.Struct, frozen=True):
    """Create or update consumer ``config`` and record ``live.confirmed[durable] = slots`` once the server has it."""

    durable: str
    slots: int
    config: dict[str, Any]

    @property
    def key(self) -> str:
        return f"consumer:{self.durable}"


class DropConsumer(msgspec.Struct, frozen=True):
    """Delete the consumer that nobody holds and take it out of ``live.confirmed`` and ``live.unheld``. It has the key of the
    ``EnsureConsumer`` that a returning holder needs, so that they cannot overtake each other."""

    durable: str

    @property
    def key(self) -> str:
        return f"consumer:{self.durable}"


class Wake(msgspec.Struct, frozen=True):
    """Wake the machine of ``worker`` as the settings say for its ``name``: somebody's task waits for it."""

    worker: str
    name: str

    @property
    def key(self) -> str:
        return f"wake:{self.worker}"


Action = Publish | PutItem | DeleteItem | Tell | EnsureConsumer | DropConsumer | Wake
