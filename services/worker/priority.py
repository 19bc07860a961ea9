"""With which priority does this worker pull for each model?

From its own measured service time beside the best holder's, the load included unless the model is in memory (leaving it out costs
3 % on six machines). GPU groups come before CPU groups. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from schemas.events import ModelInfo
from schemas.statistics import Statistics, effective, pull_priority, service_seconds
from schemas.subjects import group_durable, lane_durable

ANY_DOMAIN = ""
"""No task has it, so a lookup falls back to what is known of the model on the machine over all domains."""
CAPABILITY_ORDER = ("gpu_inference", "cpu_inference", "embedding")
ALWAYS = frozenset({"embedding"})
"""Taken by whoever holds such a model, without being declared."""
LANE_PRIORITY = 0
"""Nobody else pulls from a lane."""
FRESH_S = 0.1
"""A worker of many slots arms hundreds of pulls a second; figures that came meanwhile replace those that stand anyway."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Another worker that holds a model; ``resident`` None is unknown."""

    worker: str
    model_bytes: int | None = None
    resident: bool | None = None


def wanted_groups(
    worker: str, models: Iterable[ModelInfo], supports: Collection[str]
) -> list[tuple[str, ModelInfo | None]]:
    """The consumers that this worker may pull from, best first: its lane, then GPU groups, CPU groups, the rest."""
    held = [model for model in models if model.capability in supports or model.capability in ALWAYS]
    order = {capability: rank for rank, capability in enumerate(CAPABILITY_ORDER)}
    held.sort(key=lambda model: (order.get(model.capability, len(order)), model.capability, model.name))
    groups: list[tuple[str, ModelInfo | None]] = [(lane_durable(worker), None)]
    groups += [(group_durable(model.capability, model.name), model) for model in held]
    return groups


def priority_of(model: ModelInfo, worker: str, others: Iterable[Holder], statistics: Statistics, *, now_us: int) -> int:
    """0 best to 9. Without any measurement all holders look alike and pull alike."""
    own = _service(model.name, worker, model.bytes, model.resident, statistics, now_us)
    best = min(
        (
            _service(model.name, other.worker, other.model_bytes, other.resident, statistics, now_us)
            for other in others
            if other.worker != worker
        ),
        default=own,
    )
    return pull_priority(own, min(own, best))


def priorities(
    worker: str,
    models: Iterable[ModelInfo],
    supports: Collection[str],
    confirmed: Collection[str],
    holders: Mapping[str, Iterable[Holder]],
    statistics: Statistics,
    *,
    now_us: int,
) -> list[tuple[str, int]]:
    """(durable, priority) of every confirmed consumer, in pulling order. ``holders`` is by canonical model name."""
    return [
        (durable, LANE_PRIORITY)
        if model is None
        else (durable, priority_of(model, worker, holders.get(model.name, ()), statistics, now_us=now_us))
        for durable, model in wanted_groups(worker, models, supports)
        if durable in confirmed
    ]


class Priced:
    """The groups of a moment ago, while what is held and confirmed is the same."""

    def __init__(self, look: Callable[[], list[tuple[str, int]]]) -> None:
        self._look = look
        self._at = float("-inf")
        self._of: tuple[object, ...] = ()
        self._found: list[tuple[str, int]] = []

    def groups(self, now: float, *of: object) -> list[tuple[str, int]]:
        """``of`` are immutable; another object is another state."""
        is_same = len(of) == len(self._of) and all(one is other for one, other in zip(of, self._of, strict=True))
        if not is_same or now - self._at >= FRESH_S:
            self._found, self._at, self._of = self._look(), now, of
        return self._found


def _service(
    model: str, worker: str, model_bytes: int | None, resident: bool | None, statistics: Statistics, now_us: int
) -> float:
    expected = effective(statistics, model, ANY_DOMAIN, worker, model_bytes=model_bytes, now_us=now_us)
    return service_seconds(expected, resident=resident)
