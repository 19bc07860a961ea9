"""What the router knows about its machines at one moment, as values.

Answers "who holds what, who is free, who is loaded?" for scoring and planning. It never reads a clock: ages were computed by
whoever made the view. ``None`` is unknown, and unknown is never good.
"""

from __future__ import annotations

import msgspec

from schemas.events import ModelInfo


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """One worker. ``wait_s`` are the predicted seconds until it has a free slot (0 when it has one now); ``alive`` means
    heard recently enough to release to; ``fresh`` that its load is at most 15 s old; ages are on the router's heard clock.
    ``backend_up`` is what its last fresh load says of its model server, ``backend_reason`` why that does not answer."""

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


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """All workers that reported and did not leave, by id; those not ``alive`` are here too, so that a page can show them."""

    workers: dict[str, WorkerView] = {}

    def models(self) -> tuple[str, ...]:
        """The canonical names that anybody alive or silent holds, sorted."""
        return tuple(sorted({name for worker in self.workers.values() for name in worker.models}))

    def holders(self, model: str) -> tuple[WorkerView, ...]:
        """The workers that hold ``model``, by id."""
        return tuple(self.workers[key] for key in sorted(self.workers) if model in self.workers[key].models)
