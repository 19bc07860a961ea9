"""What the router knows about its machines at one moment, as values.

Answers "who holds what, who is free, who is loaded?" for scoring and planning. It never reads a clock: ages were computed by
whoever made the view. ``None`` is unknown, and unknown is never good.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

import msgspec

from schemas.events import Loaded, ModelInfo


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """One worker. ``wait_s`` are the predicted seconds until it has a free slot (0 when it has one now); ``alive`` means
    heard recently enough to release to; ``fresh`` that its load is at most 15 s old; ages are on the router's heard clock.
    ``backend_up`` is what its last fresh load says of its model server, ``backend_reason`` why that does not answer, ``loaded``
    what it says of the models in memory. ``paused``: somebody took it out, until ``paused_until_us`` (Unix time), or until it is
    resumed where that is None."""

    id: str
    name: str
    boot: str
    supports: tuple[str, ...] = ("cpu_inference",)
    models: dict[str, ModelInfo] = {}
    slots: int = 1
    free: int | None = None
    running: int | None = None
    wait_s: float | None = None
    resident: frozenset[str] | None = None
    loaded: dict[str, Loaded] = {}
    others_use: float | None = None
    others_reason: str | None = None
    credit_age_s: float | None = None
    armed: dict[str, int] = {}
    local: bool = True
    backend: str = ""
    backend_id: str | None = None
    backend_up: bool | None = None
    backend_reason: str | None = None
    alive: bool = True
    fresh: bool = True
    draining: bool = False
    paused: bool = False
    paused_until_us: int | None = None

    @property
    def pause_words(self) -> str:
        """Until when it is taken out, for a sentence."""
        return pause_words(self.paused_until_us)


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """All workers that reported and did not leave, by id; those not ``alive`` are here too, so that a page can show them."""

    workers: dict[str, WorkerView] = {}

    def models(self) -> tuple[str, ...]:
        """The canonical names that anybody alive or silent holds, sorted."""
        return tuple(sorted({name for worker in self.workers.values() for name in worker.models}))

    def names(self) -> dict[str, str]:
        """What each worker is called, by id; those who share a name are told apart."""
        called = Counter(worker.name for worker in self.workers.values())
        return {
            key: worker.name if called[worker.name] == 1 else f"{worker.name} ({key})"
            for key, worker in self.workers.items()
        }

    def holders(self, model: str) -> tuple[WorkerView, ...]:
        """The workers that hold ``model``, by id."""
        return tuple(self.workers[key] for key in sorted(self.workers) if model in self.workers[key].models)


def pause_words(until_us: int | None) -> str:
    """``until 2026-11-29 22:05 UTC``, or ``until it is resumed``. Not the time left: a decision can be computed again."""
    if until_us is None:
        return "until it is resumed"
    return f"until {datetime.fromtimestamp(until_us / 1e6, UTC):%Y-%m-%d %H:%M} UTC"


def ago_words(age_s: float) -> str:
    """``12 s ago``, ``3 min ago``, ``2 h 5 min ago``."""
    return f"{_span(age_s)} ago"


def _span(seconds: float) -> str:
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min" if minutes else f"{rest} s"
